"""Rule of a job by which a host's part of it counts as inactive."""

from typing import NamedTuple

from protos.jobs_pb2 import JobSpec

CPUS = 0.05  # a Python program that waits with some threads uses 0.01
NETWORK_BYTES_S = 100_000.0  # heartbeats, monitoring and name services of a host use less
GPU_POWER = 0.35  # an idle H100 draws 0.1 to 0.17 of its limit, one that waits in a collective operation a little more


class Rule(NamedTuple):
    """Limits below which use counts as none, and for how long. ``cpus`` is of the whole part."""

    after_s: float
    first_s: float  # until the first output or progress
    cpus: float = CPUS
    network_bytes_s: float = NETWORK_BYTES_S
    gpu_power: float = GPU_POWER  # of a device's limit
    saves_stacks: bool = True


def rule_of(spec: JobSpec, slots: int) -> Rule | None:
    """Return the rule of a job for its part on a host with that many slots; None if the job has none."""
    if not spec.HasField("hang") or spec.hang.after_s <= 0:
        return None
    hang = spec.hang
    return Rule(
        hang.after_s,
        max(hang.after_s, hang.first_s),
        (hang.cpus or CPUS) * max(1, slots),
        hang.network_bytes_s or NETWORK_BYTES_S,
        hang.gpu_power or GPU_POWER,
        not hang.no_stacks,
    )
