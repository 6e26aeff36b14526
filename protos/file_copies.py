"""Copies of files between the host that a job was submitted from and its first host (bsub -f), as in a job's spec.

Each is ``FILE OP FILE``: the file of the submission host, what happens, the file of the execution host. Names have no
blanks.
"""

from typing import NamedTuple

INTO = (">", "><", "<>")  # before the job: to the execution host
BACK = ("<", "<<", "><", "<>")  # after it: from there
APPENDING = ("<<",)


class FileCopy(NamedTuple):
    """One copy."""

    submission: str
    operator: str
    execution: str

    @property
    def text(self) -> str:
        """As a job's spec has it."""
        return " ".join(self)


def read(text: str) -> FileCopy:
    """Read a copy as a user writes it; the second name is the first one if it is left out.

    Raises:
        ValueError: it is none.
    """
    words = text.split()
    if len(words) not in (2, 3) or words[1] not in INTO + BACK:
        raise ValueError(text)
    return FileCopy(words[0], words[1], words[2] if len(words) == 3 else words[0])
