"""GPU choice on one host: linked devices together, on few NUMA nodes, leaving the largest groups whole."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from math import comb

from lavad.core.language.requirements.gpu import PER_SOCKET, VENDORS, GpuRequirement
from lavad.core.model import Device, HostFacts
from lavad.core.scheduling.capacity.free_resources import HostFree
from lavad.core.state.hosts.shared_gpus import SharedGpus

_TRIED_MAX = 300  # sets of devices compared: all sets of 8 devices, not of 16


def bits_of(mask: int) -> Iterator[int]:
    """Numbers of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def lowest_bits(mask: int, count: int) -> tuple[int, ...]:
    """Numbers of the ``count`` lowest bits that are set."""
    found: list[int] = []
    while len(found) < count:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(found)


def usable(facts: HostFacts, free: HostFree, wanted: GpuRequirement) -> int:
    """Mask of the devices that the job may use now."""
    if not can_prepare(facts, wanted):
        return 0
    suitable = _suitable(facts.devices, facts.gpus, facts.gpu_vendor, wanted)
    mask = free.gpus & suitable
    if not wanted.is_shared:
        return mask
    for gpu, shared in (free.gpu_shared or {}).items():
        if shared.can_take(wanted.memory_mib) and suitable >> gpu & 1:
            mask |= 1 << gpu
    return mask


def can_prepare(facts: HostFacts, wanted: GpuRequirement) -> bool:
    """True if the host's agent can set the compute mode, and start the daemon for shared use, that the job needs."""
    is_mode_set = wanted.mode == "shared" or facts.can_set_gpu_mode
    return is_mode_set and (wanted.mps == "no" or facts.has_mps)


def has_model(facts: HostFacts, wanted: GpuRequirement) -> bool:
    """True if the host has a device of the requested vendor, model, memory size and MIG slices."""
    plain = GpuRequirement(
        model=wanted.model, model_memory_mib=wanted.model_memory_mib, vendor=wanted.vendor, slices=wanted.slices
    )
    return bool(_suitable(facts.devices, facts.gpus, facts.gpu_vendor, plain))


@lru_cache(maxsize=4096)
def _suitable(devices: tuple[Device, ...], count: int, vendor: str, wanted: GpuRequirement) -> int:
    """Mask of the devices of the requested model and size; all are of one vendor."""
    vendor = vendor or VENDORS[0]
    if wanted.vendor not in ("", vendor):
        return 0
    if not devices:
        is_any = (
            not wanted.slices
            and not wanted.model
            and not wanted.is_shared
            and not wanted.memory_mib
            and not wanted.model_memory_mib
        )
        return (1 << count) - 1 if is_any else 0
    mask = 0
    for number, device in enumerate(devices):
        size = max(wanted.memory_mib, round(wanted.model_memory_mib * 0.95))  # 80G devices report slightly less
        is_kind = device.slices == wanted.slices and _has_model(device.model, wanted.model, vendor)
        if is_kind and device.memory_mib >= size:
            mask |= 1 << number
    return mask


def _has_model(model: str, wanted: str, vendor: str) -> bool:
    """True if the names match: ``A100`` and ``NVIDIAA100`` both mean "NVIDIA A100-SXM4-80GB"."""
    plain, asked = _letters(model), _letters(wanted)
    return plain.startswith(asked) or plain.removeprefix(vendor).startswith(asked)


def _letters(text: str) -> str:
    return "".join([letter for letter in text.lower() if letter.isalnum()])


def choose(
    facts: HostFacts, free: HostFree, wanted: GpuRequirement, count: int, among: int = -1
) -> tuple[int, ...] | None:
    """Choose ``count`` devices on one host out of ``among``; None if no such set satisfies the request."""
    mask = usable(facts, free, wanted) & among
    if mask.bit_count() < count:
        return None
    if not facts.devices:
        return None if wanted.link or wanted.tile else lowest_bits(mask, count)
    if wanted.is_shared and count == 1:
        return (_shared(facts, free, wanted, mask),)
    if wanted.tile:
        return _tiled(facts, mask, wanted, count)
    if wanted.is_shared:
        preferred = mask & (~free.gpus if wanted.pack else free.gpus)
        mask = preferred if preferred.bit_count() >= count else mask
    return _nearest(facts.devices, mask, count, wanted.link)


def of_any_kind(facts: HostFacts, free: HostFree, count: int) -> tuple[int, ...]:
    """Choose free devices for a request by number only, linked and near one another if possible."""
    if count < 2 or not facts.devices:
        return lowest_bits(free.gpus, count)
    return _nearest(facts.devices, free.gpus, count, False) or lowest_bits(free.gpus, count)


def _shared(facts: HostFacts, free: HostFree, wanted: GpuRequirement, mask: int) -> int:
    """Choose a shared device: with gpack the fullest one with room, else the emptiest."""
    shared = free.gpu_shared or {}
    unused = [(gpu, SharedGpus(facts.devices[gpu].memory_mib, 0)) for gpu in bits_of(mask)]
    known = [(shared.get(gpu, as_free), gpu) for gpu, as_free in unused]
    if wanted.pack:
        return min((one.left_mib, -one.jobs, gpu) for one, gpu in known)[2]
    return min((-one.left_mib, one.jobs, gpu) for one, gpu in known)[2]


def _tiled(facts: HostFacts, mask: int, wanted: GpuRequirement, count: int) -> tuple[int, ...] | None:
    """Choose by gtile: a fixed number on each socket, or the same number on each."""
    nodes = sorted({device.numa for device in facts.devices})
    each = -(-count // len(nodes)) if wanted.tile == PER_SOCKET else wanted.tile
    chosen: list[int] = []
    for node in nodes:
        here = mask & _of_node(facts.devices, node)
        want = min(each, count - len(chosen))
        if not want:
            break
        if here.bit_count() >= want:
            found = _nearest(facts.devices, here, want, wanted.link)
            chosen += found or ()
    return tuple(sorted(chosen)) if len(chosen) == count else None


def _of_node(devices: tuple[Device, ...], node: int) -> int:
    return sum(1 << number for number, device in enumerate(devices) if device.numa == node)


@lru_cache(maxsize=4096)
def _nearest(devices: tuple[Device, ...], mask: int, count: int, must_link: bool) -> tuple[int, ...] | None:
    """Set of devices with most links, fewest NUMA nodes and fewest free devices cut off beside it."""
    numbers = list(bits_of(mask))
    sets = combinations(numbers, count) if comb(len(numbers), count) <= _TRIED_MAX else _grown(devices, numbers, count)
    scored = [(_score(devices, mask, some), some) for some in sets]
    if must_link:
        scored = [one for one in scored if one[0][0] == -count * (count - 1)]
    return min(scored)[1] if scored else None


def _grown(devices: tuple[Device, ...], numbers: list[int], count: int) -> Iterator[tuple[int, ...]]:
    """Sets to compare where there are too many: one grown from each device, by links, then distance."""
    for first in numbers:
        chosen, node = [first], devices[first].numa
        while len(chosen) < count:
            together = sum(1 << number for number in chosen)
            rest = [number for number in numbers if number not in chosen]
            ranked = [((devices[n].peers & together).bit_count(), devices[n].numa == node, -n) for n in rest]
            chosen.append(-max(ranked)[2])
        yield tuple(sorted(chosen))


def _score(devices: tuple[Device, ...], mask: int, some: tuple[int, ...]) -> tuple[int, ...]:
    """Sort key, lower is better: links negated, NUMA nodes, free devices linked to the set, those on its nodes."""
    together = sum(1 << number for number in some)
    links = sum((devices[number].peers & together).bit_count() for number in some)
    nodes = {devices[number].numa for number in some}
    near = sum(1 for number in bits_of(mask & ~together) if devices[number].numa in nodes)
    linked = sum(1 for number in bits_of(mask & ~together) if devices[number].peers & together)
    return (-links, len(nodes), linked, near)
