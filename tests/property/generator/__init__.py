"""Random well-typed programs as Python text: `writer.Writer` writes one, `values` draws its arguments.

Every expression is written for a type that is wanted (`types`), so that a program is accepted by a compiler with static
types and rarely fails under CPython for a reason of its own; what it does raise (division by zero, an index out of range,
an assertion) is part of what is compared.
"""
