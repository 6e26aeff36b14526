"""Headroom of one job on each host under limits on hosts."""

import numpy as np

from lavad.core.scheduling.capacity.constraint import Ceilings


def test_a_limit_on_a_resource_of_the_site_is_none_on_devices() -> None:
    """Each kind of limit lowers what it counts; an exceeded one leaves nothing, not a negative amount."""
    found = Ceilings(np.array([8.0, 8.0]))
    found.lower("lic", np.array([0.0, 0.0]))
    assert (found.memory_mib, found.gpus) == (None, None)
    found.lower("ngpus_physical", np.array([2.0, -1.0]))
    found.lower("gpu", np.array([1.0, 4.0]))
    assert found.gpus is not None
    assert found.gpus.tolist() == [1.0, 0.0]
    assert found.slots.tolist() == [8.0, 8.0]
