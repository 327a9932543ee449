"""The native executor: typed graphs to tirx, and tirx to machine code. The only package that imports tvm."""
