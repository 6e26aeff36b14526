"""Linux memory policy of a process: its memory nodes, inherited by its children."""

import ctypes
import os
from collections.abc import Sequence

_CALL = {"x86_64": 238, "aarch64": 237, "riscv64": 237, "ppc64le": 261}
_DEFAULT, _PREFERRED, _BIND, _PREFERRED_MANY = 0, 1, 2, 5
_BITS = 1024  # length of a node mask, as large as any kernel's
_WORD = 64

LOCAL_ONLY, LOCAL_PREFER = "localonly", "localprefer"


def prefer(policy: str, nodes: Sequence[int]) -> None:
    """Take memory from these nodes: from no others, or first from them.

    Raises:
        OSError: the kernel can't, or there is no such node.
    """
    if policy == LOCAL_ONLY:
        _set(_BIND, nodes)
        return
    try:
        _set(_PREFERRED_MANY, nodes)
    except OSError:  # before Linux 5.15 there is one preferred node
        _set(_PREFERRED, nodes[:1])


def forget() -> None:
    """Restore the default policy. Raises OSError like `prefer`."""
    _set(_DEFAULT, ())


def _set(mode: int, nodes: Sequence[int]) -> None:
    mask = (ctypes.c_ulong * (_BITS // _WORD))()
    for node in nodes:
        mask[node // _WORD] |= 1 << node % _WORD
    libc = ctypes.CDLL(None, use_errno=True)
    number = _CALL.get(os.uname().machine)
    if number is None or libc.syscall(number, mode, mask if nodes else None, _BITS if nodes else 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code) if number is not None else "not known for this processor")
