"""Comments of a text that is printed anew: before a node, behind it on its line, or last in a block."""

from __future__ import annotations

from collections.abc import Sequence


class CommentSpot:
    """Where comments are written: before a node, behind it on its line, or last in a block."""

    def __init__(self, offset: int, behind: bool = False, last: bool = False):
        self.offset, self.behind, self.last = offset, behind, last


class Comments:
    """Comments that stand before or behind what is printed.

    Args:
        places: where they begin and end in `text`, in order.
        text: the text that is formatted.
    """

    def __init__(self, places: Sequence[tuple[int, int]] = (), text: str = ""):
        self.places, self.text, self.next = places, text, 0

    def before(self, offset: int) -> list[str]:
        """The comments up to an offset that are not written yet."""
        found = []
        while self.next < len(self.places) and self.places[self.next][0] < offset:
            start, end = self.places[self.next]
            found.append(self.text[start:end].rstrip())
            self.next += 1
        return found

    def behind(self, offset: int) -> list[str]:
        """The comments between an offset and the end of its line."""
        end = self.text.find("\n", offset)
        return self.before(len(self.text) + 1 if end < 0 else end)

    def rest(self) -> str:
        """What is left at the end of the text."""
        return "".join(f"{comment}\n" for comment in self.before(len(self.text) + 1))
