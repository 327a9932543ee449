"""Functions of `math` and NumPy that are written in the language itself.

A function here is plain Python over other functions of the language: it is parsed, inferred, differentiated, batched
and compiled like a user's helper, and needs no rules of its own. `sources.SOURCES` maps the library's function to ours. Frames
of this package never occur in a traceback: the user sees the line of the call.
"""
