"""scontrol show: jobs, nodes and partitions as lines of NAME=value."""

import time

from lavactl.slurm.words import nodes, values
from lavactl.slurm.words.jobs import NONE, NOT_SET, JobView, long_limit_text, user_id
from lavactl.slurm.words.states import HOST_WORDS, host_state
from lavactl.text.render import clean
from lavactl.views.hosts import gpu_use, gpus_of
from protos.slurm_words import compressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.slurm.words.nodes import Host, Queue, Site

UNKNOWN = "Unknown"


def text_of(lines: list[str], *, one_line: bool) -> str:
    """A record: its lines indented, or all in one."""
    if one_line:
        return " ".join(lines)
    return "\n".join([lines[0], *(f"   {line}" for line in lines[1:]), ""])


def job_lines(view: JobView) -> list[str]:
    """One job."""
    return list(map(clean, (*_identity(view), *_times(view), *_places(view), *_files(view))))


def _identity(view: JobView) -> list[str]:
    job, spec = view.job, view.job.spec
    array = f"ArrayJobId={job.job} ArrayTaskId={view.elements} " if job.index else ""
    if array and spec.array_limit:
        array += f"ArrayTaskThrottle={spec.array_limit} "
    return [
        f"JobId={job.job} {array}JobName={view.name}",
        f"UserId={job.user}({user_id(job.user)}) GroupId={UNKNOWN} MCS_label={NOT_SET}",
        f"Priority={job.priority} Nice=0 Account={job.project or 'default'} QOS=normal",
        f"JobState={view.state.word} Reason={view.reason} Dependency={clean(spec.dependency) or NONE}",
        f"Requeue={int(spec.rerunnable)} Restarts={max(0, job.attempt - 1)} BatchFlag=1 Reboot=0 "
        f"ExitCode={view.exit_code}",
    ]


def _times(view: JobView) -> list[str]:
    job, spec = view.job, view.job.spec
    eligible = values.moment_text(max(job.submit_time, spec.begin_time), UNKNOWN)
    start = values.moment_text(job.start_time or job.estimated_start, UNKNOWN)
    return [
        f"RunTime={values.long_time_text(view.elapsed_s)} TimeLimit={long_limit_text(view.limit_s)} TimeMin={NOT_SET}",
        f"SubmitTime={values.moment_text(job.submit_time, UNKNOWN)} EligibleTime={eligible}",
        f"StartTime={start} EndTime={values.moment_text(view.end_time, UNKNOWN)} Deadline={NOT_SET}",
    ]


def _places(view: JobView) -> list[str]:
    job, spec = view.job, view.job.spec
    hosts = compressed(view.hosts)
    wanted = ",".join(host for host in spec.hosts if host[:1] not in "~" and host != "others")
    excluded = ",".join(host[1:] for host in spec.hosts if host.startswith("~"))
    lines = [
        f"Partition={job.queue} AllocNode:Sid={job.from_host}:0",
        f"ReqNodeList={wanted or NONE} ExcNodeList={excluded or NONE}",
        f"NodeList={hosts or NONE}",
    ]
    if hosts:
        lines.append(f"BatchHost={view.hosts[0]}")
    lines += [
        f"NumNodes={view.nodes} NumCPUs={view.cpus} NumTasks={view.tasks} CPUs/Task={view.cpus_per_task}",
        f"TRES={view.resources}",
        f"MinCPUsNode={view.cpus_per_task} MinMemoryNode={view.memory_mib}M MinTmpDiskNode=0",
        f"OverSubscribe={'NO' if spec.exclusive else 'OK'} Contiguous=0 Licenses={NONE} Network={NONE}",
    ]
    return lines


def _files(view: JobView) -> list[str]:
    spec = view.job.spec
    lines = [f"Command={clean(spec.command.partition(chr(10))[0])}", f"WorkDir={clean(spec.cwd)}"]
    if spec.description:
        lines.append(f"Comment={clean(spec.description)}")
    lines += [
        f"StdErr={clean(view.file(spec.error, spec.output))}",
        f"StdIn={clean(view.file(spec.input, '/dev/null'))}",
        f"StdOut={clean(view.file(spec.output))}",
    ]
    if view.gpus:
        lines.append(f"TresPerNode=gres/gpu:{max(1, view.gpus // max(view.nodes, 1))}")
    return lines


def node_lines(host: "Host", site: "Site") -> list[str]:
    """One host."""
    facts, load = host.facts, host.load
    used = min(host.njobs, host.slots_max)
    features = ",".join(facts.resources) or NONE
    state = host_state(host)
    tres = f"cpu={host.slots_max},mem={facts.memory_mib}M,billing={host.slots_max}"
    gpus = gpus_of(host)
    busy = sum(1 for gpu in gpus if gpu_use(host, gpu.index).njobs)
    lines = [
        f"NodeName={facts.name} Arch={facts.type.lower() or 'x86_64'} "
        f"CoresPerSocket={facts.cores // max(facts.sockets, 1)}",
        f"CPUAlloc={used} CPUEfctv={host.slots_max} CPUTot={host.slots_max} CPULoad={load.r1m:.2f}",
        f"AvailableFeatures={features}",
        f"ActiveFeatures={features}",
        f"Gres={nodes.gres_text(host)}",
        f"NodeAddr={facts.name} NodeHostName={facts.name} Version=lava-{facts.version}",
        f"RealMemory={facts.memory_mib} AllocMem={host.memory_reserved_mib} FreeMem={load.mem_mib} "
        f"Sockets={facts.sockets} Boards=1",
        f"State={HOST_WORDS[state]} ThreadsPerCore=1 TmpDisk={facts.tmp_mib} Weight=1 Owner={NOT_SET} "
        f"MCS_label={NOT_SET}",
        f"Partitions={','.join(site.queues_of(facts.name))}",
        f"CfgTRES={tres}" + (f",gres/gpu={len(gpus)}" if gpus else ""),
        f"AllocTRES=cpu={used}" + (f",gres/gpu={busy}" if busy else ""),
    ]
    if host.comment or state in nodes.OTHER:
        lines.append(f"Reason={host.comment or host.status}")
    return list(map(clean, lines))


def partition_lines(queue: "Queue", site: "Site") -> list[str]:
    """One queue."""
    hosts = site.hosts_of(queue)
    seconds = nodes.time_limit_s(queue)
    states = {"up": "UP", "down": "DOWN", "drain": "DRAIN", "inact": "INACTIVE"}
    slots = sum(host.slots_max for host in hosts)
    return [
        f"PartitionName={queue.name}",
        f"AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Default={'YES' if queue.is_default else 'NO'} QoS={NOT_SET}",
        "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
        f"MaxNodes=UNLIMITED MaxTime={long_limit_text(seconds)} MinNodes=0 LLN=NO",
        f"Nodes={compressed(host.facts.name for host in hosts) or NONE}",
        f"PriorityJobFactor={queue.priority} PriorityTier={queue.priority} RootOnly=NO ReqResv=NO OverSubscribe=NO",
        f"State={states[nodes.availability(queue)]} TotalCPUs={slots} TotalNodes={len(hosts)}",
    ]


def config_lines(io: "Io") -> list[str]:
    """Settings that scripts read from scontrol show config."""
    info = io.client().info()
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(io.now()))
    return [
        f"Configuration data as of {now}",
        f"ClusterName             = {info.cluster}",
        "MaxArraySize            = 1000001",
        f"SlurmctldHost[0]        = {info.master_host}",
        f"SLURM_VERSION           = lava {info.version}",
    ]
