"""Sets of names of users, groups or hosts, as the files write them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """Some names, or all names but some; the value of ``all ~x``, ``u1 g2`` and the like."""

    is_all: bool = True
    names: frozenset[str] = frozenset()  # those included or, with ``is_all``, those excluded

    def __contains__(self, name: object) -> bool:
        return (name in self.names) is not self.is_all

    def __bool__(self) -> bool:
        return self.is_all or bool(self.names)


ALL = Names()
NONE = Names(False)
