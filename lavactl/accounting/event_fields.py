"""Fields of lsb.events records of which the kind tells how far a part goes.

Records of LSF, OpenLava and their versions differ in how many numbers or strings stand side by side, seldom in which
come first and last among them.
"""

from lavactl.accounting.acct_file import Fields, split


class Text(str):
    """A field that was written in quotes."""

    __slots__ = ()


class EventFields(Fields):
    """Fields of a line, one after the other or by runs of one kind."""

    def __init__(self, line: str) -> None:
        super().__init__(split(line, Text))

    def numbers(self) -> list[str]:
        """All numbers up to the next string."""
        return self._run(is_text=False)

    def texts(self) -> list[str]:
        """All strings up to the next number."""
        return self._run(is_text=True)

    def _run(self, *, is_text: bool) -> list[str]:
        start = self._at
        while self._at < len(self._values) and isinstance(self._values[self._at], Text) is is_text:
            self._at += 1
        return self._values[start : self._at]
