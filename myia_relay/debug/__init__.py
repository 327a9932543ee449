"""Looking inside: the IR as text and pictures."""
