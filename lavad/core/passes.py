"""Slices of scheduling passes on the live cluster. Only here does a pass change it: it takes the changes over, and says
which values it waits for.
"""

from lavad.core.cluster import Cluster
from lavad.core.plan import Plan
from lavad.core.scheduling.cycle import plan_slice
from lavad.core.scheduling.worklist import Worklist


def slice_pass(cluster: Cluster, worklist: Worklist, steps: int, now: float) -> Plan:
    """Plan the next slice, at a cost of about ``steps`` hosts examined; apply the plan before the next call."""
    plan = plan_slice(cluster, cluster.take_changes(), worklist, steps, now)
    cluster.table.awaited_values = worklist.blocked.awaited_values
    return plan
