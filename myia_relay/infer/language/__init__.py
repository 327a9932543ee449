"""What every construct, operator and builtin of the language means."""
