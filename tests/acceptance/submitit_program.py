"""Program that a user of submitit writes: a job of several tasks, an array, and a failure."""

import os
import sys

import submitit


def where(word: str) -> str:
    """Words of one task."""
    seen = submitit.JobEnvironment()
    return f"{word} {seen.global_rank}/{seen.num_tasks} on {seen.hostname.partition('.')[0] and len(seen.hostnames)}"


def add(one: int, other: int) -> int:
    """A sum; a negative one is refused."""
    if one + other < 0:
        raise ValueError("less than nothing")
    return one + other


def main() -> None:
    """Submit, wait, print the results."""
    executor = submitit.AutoExecutor(folder=os.path.join(sys.argv[1], "%j"), cluster="slurm")
    executor.update_parameters(timeout_min=5, nodes=2, tasks_per_node=2, slurm_partition="normal", name="wide")
    wide = executor.submit(where, "task")
    executor.update_parameters(nodes=1, tasks_per_node=1, slurm_array_parallelism=2, mem_gb=0.25, name="sums")
    sums = executor.map_array(add, [1, 2, 3], [10, 20, 30])
    failing = executor.submit(add, 1, -9)
    print(*wide.results(), sep="\n")
    print(*(job.result() for job in sums))
    print("less than nothing" in str(failing.exception()))
    sums[0].watcher.update()
    print(sums[0].state, sums[0].job_id.partition("_")[2])


if __name__ == "__main__":
    main()
