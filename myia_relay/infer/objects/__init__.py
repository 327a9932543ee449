"""The behaviour of Python's objects: operators, attributes, iteration; numbers, lists, structures, data types."""
