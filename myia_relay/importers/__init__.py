"""Models that were made elsewhere."""
