"""The semantics of constructs, operators and builtins."""
