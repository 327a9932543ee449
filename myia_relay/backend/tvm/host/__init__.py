"""The main function: control flow, effects, lists, records, recursion, updates in place."""
