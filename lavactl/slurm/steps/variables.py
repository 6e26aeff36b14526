"""Slurm's variables of the tasks of a step. Pure."""

from protos.slurm_words import compressed, repeated


def of_step(number: int, ranks: list[str], cpus: int | None, address: str) -> dict[str, str]:
    """Variables that all tasks of a step have."""
    hosts = list(dict.fromkeys(ranks))
    per_node = repeated(ranks.count(host) for host in hosts)
    found = {
        "SLURM_STEP_ID": str(number),
        "SLURM_STEPID": str(number),
        "SLURM_STEP_NODELIST": compressed(hosts),
        "SLURM_STEP_NUM_NODES": str(len(hosts)),
        "SLURM_STEP_NUM_TASKS": str(len(ranks)),
        "SLURM_STEP_TASKS_PER_NODE": per_node,
        "SLURM_TASKS_PER_NODE": per_node,
        "SLURM_NNODES": str(len(hosts)),
        "SLURM_NTASKS": str(len(ranks)),
        "SLURM_NPROCS": str(len(ranks)),
        "SLURM_DISTRIBUTION": "block",
        "SLURM_LAUNCH_NODE_IPADDR": address,
        "SLURM_SRUN_COMM_HOST": address,
    }
    if cpus is not None:
        found["SLURM_CPUS_PER_TASK"] = str(cpus)
    return {name: value for name, value in found.items() if value}


def of_tasks(ranks: list[str]) -> list[dict[str, str]]:
    """Variables of each task beside those of the step."""
    hosts = {host: number for number, host in enumerate(dict.fromkeys(ranks))}
    members: dict[str, list[int]] = {host: [] for host in hosts}
    found = []
    for rank, host in enumerate(ranks):
        members[host].append(rank)
        found.append(
            {
                "SLURM_PROCID": str(rank),
                "SLURM_LOCALID": str(len(members[host]) - 1),
                "SLURM_NODEID": str(hosts[host]),
                "SLURMD_NODENAME": host,
                "SLURM_TOPOLOGY_ADDR": host,
            }
        )
    listed = {host: ",".join(map(str, ids)) for host, ids in members.items()}
    for own, host in zip(found, ranks, strict=True):
        own["SLURM_GTIDS"] = listed[host]
    return found
