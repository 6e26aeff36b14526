"""Device filter of a cgroup: version 1 by the devices controller, version 2 by a BPF program.

A device is named as "MAJOR:MINOR"; all of them are character devices. A process keeps devices that it had opened
before.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Collection
from typing import Protocol

from agents.shepherd.confinement.hierarchy import write

_CALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361}
_PROG_LOAD, _PROG_ATTACH = 5, 8
_CGROUP_DEVICE_PROGRAM, _CGROUP_DEVICE = 15, 6
_INSTRUCTION = struct.Struct("=BBhi")
_LOAD_WORD, _AND, _IS_NOT, _IS, _SET, _EXIT = 0x61, 0x57, 0x55, 0x15, 0xB7, 0x95
_CHARACTER_DEVICE = 2


class DeviceFilter(Protocol):
    """Filter that keeps a group from devices."""

    def deny(self, denied: Collection[str], allowed: Collection[str]) -> None:
        """Deny the group some devices and allow others. OSError if that fails."""


class FilterV1:
    """Filter by the files of the devices controller."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[str, bool] = {}  # the written entries; another shepherd may have denied others before

    def deny(self, denied: Collection[str], allowed: Collection[str]) -> None:
        for name, devices, is_allowed in (("deny", denied, False), ("allow", allowed, True)):
            for device in devices:
                if self._known.get(device) is not is_allowed:
                    write(f"{self._path}/devices.{name}", f"c {device} rwm")
                    self._known[device] = is_allowed


class FilterV2:
    """Filter by a program that the kernel runs whenever a device is opened; a new one replaces the last."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._denied: frozenset[str] | None = None  # unknown: another shepherd may have left a program behind

    def deny(self, denied: Collection[str], allowed: Collection[str]) -> None:
        wanted = frozenset(denied)
        if wanted == self._denied or not (denied or allowed):
            return
        group = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _attach(group, wanted)
        finally:
            os.close(group)
        self._denied = wanted


def _attach(group: int, devices: Collection[str]) -> None:
    code = ctypes.create_string_buffer(program(devices))
    text = ctypes.create_string_buffer(b"Apache-2.0")
    count = (len(code) - 1) // _INSTRUCTION.size
    load = struct.pack("=IIQQ", _CGROUP_DEVICE_PROGRAM, count, ctypes.addressof(code), ctypes.addressof(text))
    loaded = _bpf(_PROG_LOAD, load)
    try:
        _bpf(_PROG_ATTACH, struct.pack("=IIII", group, loaded, _CGROUP_DEVICE, 0))
    finally:
        os.close(loaded)  # the group keeps it


def program(devices: Collection[str]) -> bytes:
    """Build a program that allows every device but these.

    Register 1 points to type and access, major and minor number.
    """
    steps = [
        (_LOAD_WORD, 0x14, 0, 0),  # register 4: type and access
        (_AND, 4, 0, 0xFFFF),
        (_LOAD_WORD, 0x12, 4, 0),  # register 2: major
        (_LOAD_WORD, 0x13, 8, 0),  # register 3: minor
        (_IS, 4, 2, _CHARACTER_DEVICE),
        (_SET, 0, 0, 1),
        (_EXIT, 0, 0, 0),
    ]
    for device in sorted(devices):
        major, minor = map(int, device.split(":"))
        steps += [(_IS_NOT, 2, 3, major), (_IS_NOT, 3, 2, minor), (_SET, 0, 0, 0), (_EXIT, 0, 0, 0)]
    steps += [(_SET, 0, 0, 1), (_EXIT, 0, 0, 0)]
    return b"".join(_INSTRUCTION.pack(*step) for step in steps)


def _bpf(command: int, attributes: bytes) -> int:
    number = _CALL.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    attributes = attributes.ljust(128, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    answer = int(libc.syscall(number, command, ctypes.create_string_buffer(attributes, 128), 128))
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
