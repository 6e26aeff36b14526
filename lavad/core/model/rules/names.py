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


@dataclass(frozen=True, slots=True)
class MemberChange:
    """Hosts that an administrator has added to the members of a host group, and those that he has deleted from them."""

    added: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.added or self.deleted)

    def of(self, members: Names) -> Names:
        """Return the members with the change."""
        if members.is_all:
            return Names(True, (members.names - self.added) | self.deleted)
        return Names(False, (members.names | self.added) - self.deleted)


ALL = Names()
NONE = Names(False)
