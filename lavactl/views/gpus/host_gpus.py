"""``bhosts -l -gpu``: model, state and jobs of each GPU of a host."""

from lavactl.text.render import MISSING, clean
from lavactl.text.units import size
from lavactl.views.hosts import gpu_use, gpus_of, model_name
from protos.gpu_vendors import label as vendor_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos import cluster_pb2

COUNTS = "NGPUS  NGPUS_SHARED_AVAIL  NGPUS_EXCLUSIVE_AVAIL"
STATIC = "{:<7} {:>24} {:>7} {:>7} {:>7} {:>7} {:>4}  {}"
STATIC_TITLES = ("GPU_ID", "MODEL", "MTOTAL", "FACTOR", "SOCKET", "VENDOR", "MIG", "NVLINK/XGMI")
DYNAMIC = "{:<7} {:>18} {:>7} {:>7} {:>5} {:>5} {:>5} {:>5} {:>7} {:>7}  {}"
DYNAMIC_TITLES = ("GPU_ID", "MODE", "MUSED", "MRSV", "TEMP", "ECC", "UT", "MUT", "PSTATE", "STATUS", "ERROR")
JOBS = "{:<7} {:>5}  {:<20} {:<20} {}"
FOREIGN = "{:<7} {:>8}  {:<15} {:>7}  {}"
FOREIGN_TITLES = ("GPU_ID", "PID", "USER", "MEM", "COMMAND")
JOB_TITLES = ("GPU_ID", "JEXCL", "RUNJOBIDS", "SUSPJOBIDS", "RSVJOBIDS")


def gpu_long_text(host: "cluster_pb2.HostRecord") -> str:
    """One host: GPU counts, then three tables with a line for each GPU."""
    gpus = gpus_of(host)
    lines = [f"HOST: {host.facts.name}", COUNTS, counts(host, gpus)]
    if gpus:
        lines += ["", "STATIC ATTRIBUTES", STATIC.format(*STATIC_TITLES)]
        lines += [static_row(gpu, gpus) for gpu in gpus]
        lines += ["", "DYNAMIC ATTRIBUTES", DYNAMIC.format(*DYNAMIC_TITLES)]
        lines += [dynamic_row(gpu, gpu_use(host, gpu.index)) for gpu in gpus]
        lines += ["", "GPU JOB INFORMATION", JOBS.format(*JOB_TITLES)]
        lines += [job_row(gpu_use(host, gpu.index)) for gpu in gpus]
        lines += _strangers(gpus)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _strangers(gpus: "list[cluster_pb2.Gpu]") -> list[str]:
    """Processes on the GPUs that belong to no job; no table without any."""
    rows = [
        FOREIGN.format(gpu.index, one.pid, one.user or MISSING, size(one.memory_mib), clean(one.command) or MISSING)
        for gpu in gpus
        for one in gpu.foreign
    ]
    return ["", "PROCESSES OF NO JOB", FOREIGN.format(*FOREIGN_TITLES), *rows] if rows else []


def counts(host: "cluster_pb2.HostRecord", gpus: "list[cluster_pb2.Gpu]") -> str:
    """GPU counts of a host: all, those free for shared use now, and those free for exclusive use."""
    uses = [gpu_use(host, gpu.index) for gpu in gpus]
    shared = sum(1 for use in uses if not use.njobs or not use.exclusive)
    return f"{len(gpus):<6} {shared:<19} {sum(1 for use in uses if not use.njobs)}"


def static_row(gpu: "cluster_pb2.Gpu", gpus: "list[cluster_pb2.Gpu]") -> str:
    """Constant attributes of a GPU; NVLink to each GPU of the host as Y or N, and - for itself."""
    links = "/".join(
        "-" if other.index == gpu.index else "Y" if other.index in gpu.nvlink_peers else "N" for other in gpus
    )
    mig = "Y" if gpu.mig else "N"
    return STATIC.format(
        gpu.index, model_name(gpu), size(gpu.memory_mib), MISSING, gpu.numa_node, vendor_label(gpu.vendor), mig, links
    )  # fmt: skip


def dynamic_row(gpu: "cluster_pb2.Gpu", use: "cluster_pb2.GpuUse") -> str:
    """GPU load as the host last reported it."""
    is_well = gpu.status in ("", "ok")
    return DYNAMIC.format(
        gpu.index, (gpu.mode or "shared").upper(), size(gpu.memory_used_mib), size(use.memory_reserved_mib),
        f"{gpu.temperature_c}C", gpu.ecc_errors, f"{gpu.utilisation:.0%}", f"{gpu.memory_utilisation:.0%}", MISSING,
        "ok" if is_well else "error", MISSING if is_well else clean(gpu.status),
    )  # fmt: skip


def job_row(use: "cluster_pb2.GpuUse") -> str:
    """Jobs that use the GPU. Reservations of pending jobs name hosts, not GPUs, and do not appear."""
    jexcl = ("Y" if use.exclusive else "N") if use.njobs else MISSING
    running, suspended = (" ".join(jobs) or MISSING for jobs in (use.run_jobs, use.susp_jobs))
    return JOBS.format(use.index, jexcl, running, suspended, MISSING)
