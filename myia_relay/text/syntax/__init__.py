"""The parser: tokens to trees, with names resolved."""
