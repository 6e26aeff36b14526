"""Ray: tasks on all nodes of the cluster that the job's own Ray has, each node with the slots of its task."""

import sys
import time

import ray

ray.init(address="auto", log_to_driver=False)
wanted = int(sys.argv[1])
end = time.monotonic() + 120
while len(nodes := [node for node in ray.nodes() if node["Alive"]]) < wanted and time.monotonic() < end:
    time.sleep(0.2)


@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def where(number: int) -> tuple[int, str]:
    """Return the square of a number, and the node."""
    time.sleep(0.5)
    return number * number, ray.util.get_node_ip_address()


found = ray.get([where.remote(number) for number in range(12)])
cpus = sorted(node["Resources"].get("CPU", 0) for node in nodes)
print(
    f"Ray {ray.__version__}: {len(nodes)} nodes, CPUs {cpus}, ran on {len({ip for _, ip in found})} nodes", flush=True
)
print("sum of squares", sum(square for square, _ in found), flush=True)
