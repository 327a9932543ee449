"""Tables of public names: the primitives that operators, NumPy, `math` and `relay.*` emit."""
