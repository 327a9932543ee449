"""What operators, NumPy, `math` and `relay.*` mean in terms of primitives: the tables of public names."""
