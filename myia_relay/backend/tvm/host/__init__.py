"""The main function: control flow, effects, lists, records, recursion, in-place updates."""
