"""Whose job is it: only the owner or an administrator may change one."""

from lavad.core.commands import Caller
from lavad.core.reasons import Refused
from lavad.core.records import ArrayRecord, Job


def is_owner(record: Job | ArrayRecord, caller: Caller) -> bool:
    """The same user: by uid, which the kernel vouched for."""
    return record.shared.uid == caller.uid


def check_owner(record: Job | ArrayRecord, caller: Caller) -> None:
    """Refuse callers who neither own the job nor administer the cluster.

    Raises:
        Refused: permission denied.
    """
    if not is_owner(record, caller) and not caller.is_administrator:
        raise Refused(denial(caller))


def denial(caller: Caller) -> str:
    """Why the caller may not, in a way that an administrator who sits at the wrong host understands."""
    if caller.would_administer:
        return f"User permission denied: {caller.host} is not a host that administrators are heeded from"
    return "User permission denied"
