"""What the rules of primitives are written with: shared type relations, broadcasting, batching and forward rules."""
