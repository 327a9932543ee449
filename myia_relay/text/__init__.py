"""Relay as text: the language of the papers, with a parser, a checker, a printer, passes, and native code behind it.

`tree.py` is the contract between all parts: read it first.
"""
