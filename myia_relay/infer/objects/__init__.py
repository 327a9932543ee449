"""What Python's objects do: operators, attributes, iteration; numbers, lists, structures, data types."""
