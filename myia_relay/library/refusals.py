"""How functions of the library refuse a call: at compile time, at the user's line.

`raise` in the library is for errors that only appear at run time: a singular matrix, sizes that differ. Errors that
follow from ranks and dtypes are refused at compile time.
"""

from __future__ import annotations

from typing import NoReturn


def unsupported(why) -> NoReturn:
    """Refuse operands of a kind that a function does not take, or that compiled code does not.

    Raises:
        TypeError: `why`, which is known at compile time.
    """
    raise TypeError(why)


def misfit(why) -> NoReturn:
    """Refuse operands whose shapes do not fit.

    Raises:
        ValueError: `why`, which is known at compile time.
    """
    raise ValueError(why)
