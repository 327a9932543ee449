"""Operators of images, in terms of the primitives."""
