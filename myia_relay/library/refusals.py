"""How functions of the library refuse a call: at compile time, at the user's line.

`raise` in the library is for what only a run may tell: a singular matrix, sizes that are not equal. What ranks and dtypes tell
is refused before.
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
