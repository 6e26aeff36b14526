"""Packed texts of jobs, one object for equal ones: jobs of a loop in a shell have the same."""

KEPT = 4096


class Texts(dict[bytes, bytes]):
    """Texts of jobs submitted lately: a text, looked up by itself, gives the first object that was equal to it."""

    def __missing__(self, text: bytes) -> bytes:
        if len(self) >= KEPT:
            self.clear()
        self[text] = text
        return text
