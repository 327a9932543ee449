"""Types, shapes and symbolic dimensions."""
