"""Every primitive, whole, by family; importing this package registers them all and checks that none lacks a rule."""

from . import control, effects, structure  # noqa: F401
