"""What the text of a function says before it is parsed: its source, its tree, its names, and until where values are needed."""
