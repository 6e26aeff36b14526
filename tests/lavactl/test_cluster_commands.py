"""Golden output of bqueues, bhosts, lsload, lshosts, lsid and bhist."""

import json
from pathlib import Path
from typing import Any

import pytest

from protos import cluster_pb2, common_pb2, jobs_pb2
from tests.lavactl.scripted import NOW, Desk, a_job, at

GIB = 1024


def a_host(name: str, status: str = "ok", run: int = 0, gpus: int = 0, **facts: Any) -> cluster_pb2.HostRecord:
    """A host as the examples of lsf.md have them."""
    devices = [
        cluster_pb2.Gpu(index=index, model="NVIDIA A100", driver="550.1", memory_mib=80 * GIB, temperature_c=46,
                        memory_used_mib=(1 - index) * 2 * GIB, mode="shared", status="ok", utilisation=0.5)
        for index in range(gpus)
    ]  # fmt: skip
    plain: dict[str, Any] = {
        "name": name, "type": "X86_64", "model": "Intel_E5", "cpu_factor": 60.0, "cpus": 32, "server": True,
        "memory_mib": 256 * GIB, "swap_mib": 16 * GIB, "resources": ["mpi", "gpu"], "gpus": devices,
    }  # fmt: skip
    load = cluster_pb2.Load(r15s=0.1, r1m=0.3, r15m=0.2, ut=0.02, io=4, ls=1, it=120, tmp_mib=40 * GIB,
                            swp_mib=16 * GIB, mem_mib=240 * GIB)  # fmt: skip
    return cluster_pb2.HostRecord(
        facts=cluster_pb2.HostFacts(**{**plain, **facts}), load=load, status=status, slots_max=32, njobs=run, run=run
    )  # fmt: skip


def test_bqueues(desk: Desk) -> None:
    """lsf.md 1.5: widths 15 4 14 4 4 4 4 5 5 5 5, status in the middle of its column."""
    desk.client.queue_records = [
        cluster_pb2.QueueRecord(name="urgent", priority=50, open=True, active=True, per_user=8),
        cluster_pb2.QueueRecord(
            name="gpu", priority=40, open=True, active=True, max=64, per_user=16, njobs=20, pend=4, run=16
        ),
        cluster_pb2.QueueRecord(name="night", priority=20, open=True, njobs=6, pend=6),
    ]
    assert desk.type("bqueues").out == (
        "QUEUE_NAME      PRIO     STATUS      MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP\n"
        "urgent           50   Open:Active      -    8    -    -     0     0     0     0\n"
        "gpu              40   Open:Active     64   16    -    -    20     4    16     0\n"
        "night            20    Open:Inact      -    -    -    -     6     6     0     0\n"
    )


def test_bqueues_long(desk: Desk) -> None:
    """lsf.md 1.5: the skeleton of -l."""
    desk.client.queue_records = [
        cluster_pb2.QueueRecord(
            name="gpu", priority=40, open=True, active=True, max=64, per_user=16, njobs=20, pend=4, run=16,
            description="GPU jobs", is_default=True,
            parameters={"RUNLIMIT": "1440.0 min", "RES_REQ": "select[ngpus>0]"},
        )
    ]  # fmt: skip
    assert desk.type("bqueues", "-l", "gpu").out == (
        "\nQUEUE: gpu\n  -- GPU jobs.  This is the default queue.\n\nPARAMETERS/STATISTICS\n"
        "PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV\n"
        " 40    0  Open:Active      64   16    -    -    20     4    16     0     0    0\n"
        "Interval for a host to accept two jobs is 0 seconds\n"
        "\nMAXIMUM LIMITS:\n RUNLIMIT\n 1440.0 min\n"
        "\nSCHEDULING PARAMETERS\n"
        "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem\n"
        " loadSched   -     -     -     -       -     -    -     -     -      -      -\n"
        " loadStop    -     -     -     -       -     -    -     -     -      -      -\n"
        "\nUSERS:  all\nHOSTS:  all\nRES_REQ:  select[ngpus>0]\n"
    )


def test_thresholds_of_migration(desk: Desk) -> None:
    """lsf.md 6.4: MIG of the queue, and of the host; 0 is one, too."""
    desk.client.queue_records = [cluster_pb2.QueueRecord(name="gpu", migration_s=0.0)]
    assert "Migration threshold is 0 minutes\nInterval for a host" in desk.type("bqueues", "-l").out
    desk.client.host_records = [a_host("n001"), a_host("n002")]
    desk.client.host_records[0].migration_s = 600.0
    first, second = desk.type("bhosts", "-l").out.split("HOST  n002")
    assert "\n\nMigration threshold is 10 min \n" in first
    assert "Migration" not in second


def test_limits_as_fields_of_queues(desk: Desk) -> None:
    """bqueues -o has the limits of -l with their units, a dash for none; aliases mean the same."""
    queue = cluster_pb2.QueueRecord(name="gpu", default_limits={"RUNLIMIT": "60.0 min"})
    queue.parameters.update({"RUNLIMIT": "1440.0 min", "MEMLIMIT": "64000000 K", "PROCLIMIT": "1 4 64"})
    desk.client.queue_records = [queue, cluster_pb2.QueueRecord(name="plain")]
    fields = "qname runlimit default_runlimit memlimit max_cpulimit min_tasklimit def_tasklimit tasklimit res_req"
    assert desk.type("bqueues", "-noheader", "-o", f"{fields} delimiter='|'").out == (
        "gpu|1440.0 min|60.0 min|64000000 K|-|1|4|64|-\nplain|-|-|-|-|-|-|-|-\n"
    )


def test_unknown_queue(desk: Desk) -> None:
    """lsf.md 1.5."""
    result = desk.type("bqueues", "nope")
    assert (result.code, result.out, result.err) == (255, "", "nope: No such queue\n")


def test_bhosts(desk: Desk) -> None:
    """lsf.md 1.5: host 18, status 11; the default form omits the reason for a closed host."""
    desk.client.host_records = [a_host("n001", run=4), a_host("n002", "closed_Full", 32), a_host("n003", "unavail")]
    assert desk.type("bhosts").out == (
        "HOST_NAME          STATUS       JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV\n"
        "n001               ok              -     32      4      4      0      0      0\n"
        "n002               closed          -     32     32     32      0      0      0\n"
        "n003               unavail         -     32      0      0      0      0      0\n"
    )
    assert "n002               closed_Full        -     32" in desk.type("bhosts", "-w").out


def test_bhosts_says_why_every_host_is_away(desk: Desk) -> None:
    """A master that waits for an administrator keeps all hosts ``unavail``; bhosts reports the problem."""
    desk.client.host_records = [a_host("n001"), a_host("n002", "unavail")]
    desk.client.status_reply.problems.append("The database is older than the cluster. Run:  lavactl adopt")
    assert desk.type("bhosts").err == ""
    for host in desk.client.host_records:
        host.status = "unavail"
    typed = desk.type("bhosts", "-w")
    assert "unavail" in typed.out
    assert typed.err == "The database is older than the cluster. Run:  lavactl adopt\n"
    desk.client.host_records.clear()
    assert desk.type("bhosts").err == "No hosts found\nThe database is older than the cluster. Run:  lavactl adopt\n"


def test_bhosts_fields_are_integers(desk: Desk) -> None:
    """lsf-clients.md: torchx splits `hname max ng` on one blank and needs integers."""
    desk.client.host_records = [a_host("n001"), a_host("n010", gpus=2)]
    assert desk.type("bhosts", "-noheader", "-o", "hname max ng").out == "n001 32 0\nn010 32 2\n"
    records = json.loads(desk.type("bhosts", "-json", "-o", "host_name ngpus").out)
    assert records == {
        "COMMAND": "bhosts",
        "HOSTS": 2,
        "RECORDS": [{"HOST_NAME": "n001", "NGPUS": "0"}, {"HOST_NAME": "n010", "NGPUS": "2"}],
    }


def test_bhosts_fields_of_gpus(desk: Desk) -> None:
    """A device that a job has for itself counts by its compute mode; those without jobs are free for either use."""
    host = a_host("n010", gpus=2)
    host.facts.gpus.extend([cluster_pb2.Gpu(index=2, mode="shared"), cluster_pb2.Gpu(index=3, mode="shared")])
    host.facts.gpus[0].mode = "exclusive_process"
    for index, (njobs, alone) in enumerate([(1, True), (1, True), (2, False), (0, False)]):
        host.gpu_use.add(index=index, njobs=njobs, exclusive=alone)
    desk.client.host_records = [host]
    names = "ngpus ngpus_alloc ngpus_excl_alloc ngpus_shared_alloc ngpus_shared_jexcl_alloc ngpus_excl_avail"
    out = desk.type("bhosts", "-o", f"HOST_NAME {names} ngpus_shared_avail delimiter='|'").out
    assert out.splitlines() == [f"HOST_NAME|{names.upper().replace(' ', '|')}|NGPUS_SHARED_AVAIL", "n010|4|3|1|1|1|1|2"]
    assert desk.type("bhosts", "-noheader", "-o", "ng ngu ngx ngs ngsjx ngfx ngfs").out == "4 3 1 1 1 1 2\n"


def test_slots_of_whole_hosts(desk: Desk) -> None:
    """lsf.md 1.5: -alloc is the master's count, asked for beside any form."""
    desk.client.host_records, desk.client.queue_records = [a_host("n001", run=4)], [cluster_pb2.QueueRecord(name="q")]
    desk.client.user_records = [cluster_pb2.UserRecord(name="alice")]
    asked = []
    for command in (["bhosts", "-w"], ["bqueues"], ["busers"]):
        for more in ([], ["-alloc"]):
            assert desk.type(*command, *more).code == 0
            asked.append(desk.client.asked[-1].allocated)
    assert asked == [False, True] * 3


def test_processors_of_hosts(desk: Desk) -> None:
    """-aff: the processors of lshosts -T, with a star where jobs are bound; -l has its own form before it."""
    host = a_host("n001", run=4)
    host.facts.memory_mib = 65536
    host.facts.topology = "0 0 0 0,1 1 0 0,2 0 0 0,3 1 0 0"
    host.bound_cpus.extend([0, 2])
    desk.client.host_records = [host]
    tree = "Host[64G] n001\n    NUMA[0]\n        Socket\n            core(*0 *2)\n            core(1 3)\n"
    assert desk.type("bhosts", "-aff").out == tree
    assert desk.client.asked[-1].processors
    long = desk.type("bhosts", "-l", "-aff").out
    assert long.startswith("HOST  n001\nSTATUS ")
    assert long.endswith(f"\n AFFINITY: Enabled\n{tree}")
    assert "-aff is a form of its own" in desk.type("bhosts", "-aff", "-w").err
    host.ClearField("bound_cpus")
    assert desk.type("lshosts", "-T").out == tree.replace("*", "")


def test_exceptional_hosts(desk: Desk) -> None:
    """-x shows hosts whose jobs end abnormally too often, in any form."""
    desk.client.host_records = [a_host("n001"), a_host("n002", "closed_Adm")]
    none = desk.type("bhosts", "-x")
    assert (none.code, none.out, none.err) == (0, "There is no exceptional host found\n", "")
    desk.client.host_records[1].is_exceptional = True
    assert [line.split()[0] for line in desk.type("bhosts", "-x", "-w").out.splitlines()] == ["HOST_NAME", "n002"]


def test_fields_of_users(desk: Desk) -> None:
    """busers -o takes the columns of -w and the slots in use, as lines or JSON; LSB_BUSERS_FORMAT is its default."""
    desk.client.user_records = [
        cluster_pb2.UserRecord(name="alice", max=64, njobs=112, pend=80, run=30, ssusp=2, pending_jobs=81),
        cluster_pb2.UserRecord(name="chem", is_group=True, per_processor=0.5, pend_max=100),
    ]
    assert desk.type("busers", "-o", "user:8 jl/p max:-5 nstart mpend delimiter='|'", "all").out == (
        "USER    |JL/P|  MAX|NSTART|MPEND\nalice   |-|   64|32|-\nchem/   |0.5|    -|0|100\n"
    )
    assert json.loads(desk.type("busers", "-json", "-o", "user pjobs", "alice").out) == {
        "COMMAND": "busers", "USERS": 1, "RECORDS": [{"USER": "alice", "PJOBS": "81"}],
    }  # fmt: skip
    desk.environ["LSB_BUSERS_FORMAT"] = "user run"
    assert desk.type("busers", "alice").out == "USER RUN\nalice 30\n"
    assert desk.type("busers", "-w", "alice").out.startswith("USER/GROUP ")
    assert "-json needs -o" in desk.type("busers", "-json", "-w").err


def test_bhosts_gpu(desk: Desk) -> None:
    """lsf.md 1.5: a line for each device, the host named once."""
    host = a_host("n010", gpus=2)
    host.gpu_use.add(index=0, njobs=1, run=1)
    desk.client.host_records = [host]
    assert desk.type("bhosts", "-gpu").out == (
        "HOST_NAME              GPU_ID                MODEL     MUSED      MRSV  NJOBS    RUN   SUSP    RSV    VENDOR\n"
        "n010                        0           NVIDIAA100     2048M        0M      1      1      0      0    Nvidia\n"
        "                            1           NVIDIAA100        0M        0M      0      0      0      0    Nvidia\n"
    )


def test_bhosts_gpu_long(desk: Desk) -> None:
    """Attributes, state and jobs of GPUs; a host without GPUs is reported as such."""
    host = a_host("n010", gpus=2)
    host.gpu_use.add(index=0, njobs=2, run=1, susp=1, memory_reserved_mib=512, run_jobs=["7[2]"], susp_jobs=["9"])
    host.facts.gpus[0].nvlink_peers.append(1)
    host.facts.gpus[1].status = "lost"
    desk.client.host_records = [host, a_host("n001")]
    title, counts, numbers, _, *rest = desk.type("bhosts", "-gpu", "-l").out.splitlines()
    assert (title, counts.split(), numbers.split()) == (
        "HOST: n010", ["NGPUS", "NGPUS_SHARED_AVAIL", "NGPUS_EXCLUSIVE_AVAIL"], ["2", "2", "1"],
    )  # fmt: skip
    assert [line.split() for line in rest] == [
        ["STATIC", "ATTRIBUTES"],
        ["GPU_ID", "MODEL", "MTOTAL", "FACTOR", "SOCKET", "VENDOR", "MIG", "NVLINK/XGMI"],
        ["0", "NVIDIAA100", "80G", "-", "0", "Nvidia", "N", "-/Y"],
        ["1", "NVIDIAA100", "80G", "-", "0", "Nvidia", "N", "N/-"],
        [],
        ["DYNAMIC", "ATTRIBUTES"],
        ["GPU_ID", "MODE", "MUSED", "MRSV", "TEMP", "ECC", "UT", "MUT", "PSTATE", "STATUS", "ERROR"],
        ["0", "SHARED", "2048M", "512M", "46C", "0", "50%", "0%", "-", "ok", "-"],
        ["1", "SHARED", "0M", "0M", "46C", "0", "50%", "0%", "-", "error", "lost"],
        [],
        ["GPU", "JOB", "INFORMATION"],
        ["GPU_ID", "JEXCL", "RUNJOBIDS", "SUSPJOBIDS", "RSVJOBIDS"],
        ["0", "N", "7[2]", "9", "-"],
        ["1", "-", "-", "-", "-"],
        [],
        ["HOST:", "n001"],
        ["NGPUS", "NGPUS_SHARED_AVAIL", "NGPUS_EXCLUSIVE_AVAIL"],
        ["0", "0", "0"],
    ]


def test_bhosts_long(desk: Desk) -> None:
    """lsf.md 1.5: numbers, load and thresholds of one host."""
    desk.client.host_records = [a_host("n001", run=4)]
    lines = desk.type("bhosts", "-l", "n001").out.splitlines()
    assert lines[0] == "HOST  n001"
    assert lines[5:7] == [
        "              r15s   r1m  r15m   ut    pg    io  ls    it   tmp   swp   mem",
        " Total         0.1   0.3   0.2   2%   0.0     4   1   120   40G   16G  240G",
    ]


def test_unknown_host(desk: Desk) -> None:
    """lsf.md 1.2: the sentence for a name that is no host."""
    desk.client.host_records = [a_host("n001")]
    result = desk.type("bhosts", "n001", "nope")
    assert result.code == 255
    assert result.err == "nope: Bad host name, host group name or cluster name\n"
    assert "n001" in result.out


def test_lsload(desk: Desk) -> None:
    """lsf.md 1.7: host 15, status to the right; a host that is down has no values."""
    desk.client.host_records = [a_host("n001", "closed_Full"), a_host("n003", "unavail")]
    assert desk.type("lsload").out == (
        "HOST_NAME       status  r15s   r1m  r15m   ut    pg  ls    it   tmp   swp   mem\n"
        "n001                ok   0.1   0.3   0.2   2%   0.0   1   120   40G   16G  240G\n"
        "n003            unavail\n"
    )


def test_lsload_gpu(desk: Desk) -> None:
    """lsf.md 1.7: -gpu and -gpuload."""
    desk.client.host_records = [a_host("n010", gpus=2)]
    assert desk.type("lsload", "-gpu").out == (
        "HOST_NAME       status  ngpus  gpu_shared_avg_mut  gpu_shared_avg_ut  ngpus_physical\n"
        "n010                ok      2                  0%                50%               2\n"
    )
    assert desk.type("lsload", "-gpuload").out.splitlines()[1].split() == [
        "n010", "0", "NVIDIAA100", "0.0", "46C", "0.0", "50%", "0%", "80G", "2048M", "-", "ok", "-",
    ]  # fmt: skip
    desk.client.host_records[0].facts.gpus[0].power_w = 305.5
    header, row, _ = (line.split() for line in desk.type("lsload", "-gpuload", "-w").out.splitlines())
    assert (len(header), len(row), row[header.index("gpu_power")]) == (14, 14, "305.5")


def test_lshosts(desk: Desk) -> None:
    """lsf.md 1.7: static attributes."""
    desk.client.host_records = [a_host("n001"), a_host("login1", server=False, resources=[])]
    assert desk.type("lshosts").out == (
        "HOST_NAME      type    model  cpuf ncpus maxmem maxswp server RESOURCES\n"
        "n001         X86_64 Intel_E5  60.0    32   256G    16G    Yes (mpi gpu)\n"
        "login1       X86_64 Intel_E5  60.0    32   256G    16G     No ()\n"
    )


def test_lshosts_gpu(desk: Desk) -> None:
    """lsf.md 1.7: -gpu."""
    desk.client.host_records = [a_host("n010", gpus=1)]
    header, row = desk.type("lshosts", "-gpu").out.splitlines()
    assert header.split() == ["HOST_NAME", "gpu_id", "gpu_model", "gpu_driver", "gpu_factor", "numa_id", "vendor"]
    assert row.split() == ["n010", "0", "NVIDIAA100", "550.1", "-", "0", "Nvidia"]


def test_lshosts_mig(desk: Desk) -> None:
    """lsf.md 1.7: -gpu [-mig]: a line for each MIG device, with that of its GPU, its instances and its profile."""
    whole, sliced = a_host("n010", gpus=1), a_host("n011", gpus=2)
    for index, gpu in enumerate(sliced.facts.gpus):
        gpu.mig_profile, gpu.parent_plus_one, gpu.gpu_instance, gpu.compute_instance = "1g.5gb", 1, 7 + index, 0
    desk.client.host_records = [whole, sliced]
    header, *rows = desk.type("lshosts", "-gpu", "-mig").out.splitlines()
    assert header.split()[6:] == ["vendor", "devid", "gid", "cid", "inst_name"]
    assert {len(line) for line in rows} == {len(header)}
    assert [row[12:18].split() + row.split()[-4:] for row in rows] == [
        ["0", "-", "-", "-", "-"], ["0", "0", "7", "0", "1g.5gb"], ["0", "1", "8", "0", "1g.5gb"],
    ]  # fmt: skip
    refused = desk.type("lshosts", "-mig")
    assert (refused.code, "-mig needs -gpu" in refused.err) == (255, True)


def test_lsid(desk: Desk) -> None:
    """lsf.md 1.7: product line, blank line, cluster and master."""
    lines = desk.type("lsid").out.splitlines()
    assert lines[0].startswith("lava 0.1.0")
    assert lines[3:] == ["", "My cluster name is c1", "My master name is m1"]


def a_history() -> jobs_pb2.JobHistory:
    """The job of lsf.md 1.6."""
    spec = jobs_pb2.JobSpec(name="md_npt", command="mpirun ./md npt.in", cwd="/home/alice/run")
    record = a_job(
        [("n001", 2), ("n002", 2)], state=common_pb2.EXIT, spec=spec, slots_min=4, slots_max=4,
        start_time=at("09:02:15"), end_time=at("09:20:01"),
    )  # fmt: skip
    notes = [
        (at("09:02:15"), "Dispatched to 4 Hosts/Processors <n001> <n001> <n002> <n002>"),
        (at("09:20:00"), "Signal <KILL> requested by user or administrator <alice>"),
        (at("09:20:01"), "Exited with exit code 130. The CPU time used is 1804.2 seconds"),
    ]
    return jobs_pb2.JobHistory(
        job=1201, user="alice", name="md_npt", record=record,
        notes=[jobs_pb2.JobNote(time=time, text=text) for time, text in notes],
        seconds_by_state={"PEND": 4.2, "RUN": 1066.0},
    )  # fmt: skip


def test_bhist(desk: Desk) -> None:
    """lsf.md 1.6: the summary table."""
    desk.client.histories = [a_history()]
    assert desk.type("bhist", "-a").out == (
        "Summary of time in seconds spent in various states:\n"
        "JOBID   USER    JOB_NAME  PEND    PSUSP   RUN     USUSP   SSUSP   UNKWN   TOTAL\n"
        "1201    alice   md_npt    4       0       1066    0       0       0       1070\n"
    )
    assert desk.client.asked[-1].filter.finished_too


def test_bhist_of_a_time(desk: Desk) -> None:
    """-S -D -C: the master chooses, from jobs in any state; a time that is none is refused."""
    desk.client.histories = [jobs_pb2.JobHistory(job=1201)]
    assert desk.type("bhist", "-S", "2026/11/20,", "-D", "/9:00,/9:30", "-C", ".-2/,.").code == 0
    request = desk.client.asked[-1]
    assert request.submitted == jobs_pb2.TimeRange(first=at("00:00:00", 20))
    assert (request.dispatched.first, request.completed.first) == (at("09:00:00"), at("09:30:00", 19))
    assert (request.filter.finished_too, list(request.filter.states)) == (True, [])
    result = desk.type("bhist", "-C", "yesterday")
    assert (result.code, result.err.startswith("bhist -C yesterday: expected a time interval, as ")) == (255, True)


def test_bhist_by_details(desk: Desk) -> None:
    """-Jd and -G: elements of an array share what was submitted; the details are asked for."""
    spec = jobs_pb2.JobSpec(description="night run", user_group="chem")
    records = [
        a_job(job=7, index=1, name="x[1]", spec=spec),
        a_job(job=7, index=2, name="x[2]"),
        a_job(job=8, name="y", spec=jobs_pb2.JobSpec(description="day run")),
    ]
    desk.client.histories = [
        jobs_pb2.JobHistory(job=one.job, index=one.index, user="alice", name=one.name, record=one) for one in records
    ]
    for options in (["-Jd", "night*"], ["-G", "chem"]):
        out = desk.type("bhist", *options).out
        assert [line.split()[0] for line in out.splitlines()[2:]] == ["7[1]", "7[2]"]
        assert desk.client.asked[-1].details
    assert desk.type("bhist", "-l", "-Jd", "day*").out.count("Job <") == 1
    result = desk.type("bhist", "-Jd", "noon")
    assert (result.code, result.err) == (255, "No matching job found\n")


def test_bhist_long(desk: Desk) -> None:
    """lsf.md 1.6: owner, events, and the summary of one job."""
    desk.client.histories = [a_history()]
    assert (
        desk.type("bhist", "-l", "-n", "0", "1201").out
        == """
Job <1201>, Job Name <md_npt>, User <alice>, Project <default>, Command <mpirun 
                     ./md npt.in>
Sat Nov 21 09:02:11: Submitted from host <login1>, to Queue <normal>, CWD <$HOME
                     /run>, 4 Processors Requested;
Sat Nov 21 09:02:15: Dispatched to 4 Hosts/Processors <n001> <n001> <n002> <n002
                     >;
Sat Nov 21 09:20:00: Signal <KILL> requested by user or administrator <alice>;
Sat Nov 21 09:20:01: Exited with exit code 130. The CPU time used is 1804.2 seco
                     nds;

No output file: bpeek 1201 shows its output, also for a while after its end

Summary of time in seconds spent in various states by  Sat Nov 21 09:20:01
  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL
  4        0        1066     0        0        0        1070
"""
    )


def test_bhist_brief(desk: Desk) -> None:
    """lsf.md 1.6: -b has the events and the summary, without what was asked for at submission."""
    history = a_history()
    history.notes.insert(
        0, jobs_pb2.JobNote(time=at("09:02:11"), text="Submitted from host <login1>, to Queue <normal>")
    )
    desk.client.histories = [history]
    out = desk.type("bhist", "-b", "1201").out
    assert out.startswith("\nJob <1201>, Job Name <md_npt>, User <alice>, Project <default>, Command <mpirun ")
    assert "Sat Nov 21 09:02:11: Submitted from host <login1>, to Queue <normal>;\nSat Nov 21 09:02:15: Disp" in out
    assert "4 Processors Requested" not in out
    assert out.endswith("  4        0        1066     0        0        0        1070\n")


def test_bhist_by_time(desk: Desk) -> None:
    """lsf.md 1.6: -t has the events of all jobs in their order; -T says of which time."""
    late = a_history()
    late.job, late.record.submit_time = 1202, at("09:02:15")
    late.notes[0].time, late.notes[1].time = at("09:10:00"), at("09:11:00")
    desk.client.histories = [a_history(), late]
    lines = desk.type("bhist", "-t", "-T", "2026/11/21/09:03,2026/11/21/09:19").out.splitlines()
    assert [line for line in lines if line[0] != " "] == [
        "Sat Nov 21 09:10:00: Job <1202> dispatched to 4 Hosts/Processors <n001> <n001> <",
        "Sat Nov 21 09:11:00: Job <1202> signal <KILL> requested by user or administrator",
    ]
    request = desk.client.asked[-1]
    assert (request.details, request.filter.finished_too) == (True, True)
    assert (request.between.first, request.between.last) == (at("09:03:00"), pytest.approx(at("09:20:00")))
    lines = [line.split(">")[0] for line in desk.type("bhist", "-t").out.splitlines() if line[0] != " "]
    assert [line[11:19] + line[-6:] for line in lines] == [
        *("09:02:15 <1201", "09:10:00 <1202", "09:11:00 <1202"),
        *("09:20:00 <1201", "09:20:01 <1201", "09:20:01 <1202"),
    ]
    assert desk.client.asked[-1].between.first == NOW - 7 * 86400
    desk.environ["LSB_BHIST_HOURS"] = "1"
    assert desk.type("bhist", "-t").code == 0
    assert desk.client.asked[-1].between.first == NOW - 3600.0
    desk.environ["LSB_BHIST_HOURS"] = "x"
    assert desk.type("bhist", "-t").err == "LSB_BHIST_HOURS: x: expected a number of hours.\n"
    assert "-T needs -t" in desk.type("bhist", "-T", ".,").err
    assert "-l and -t cannot be used together" in desk.type("bhist", "-l", "-t").err


def test_bhist_long_says_how_to_read_kept_output(desk: Desk) -> None:
    """Of a job that has started and has no file for its output; an element is named with its index."""
    element, waiting, filed = a_history(), a_history(), a_history()
    element.index, waiting.record.start_time, filed.record.spec.output = 3, 0.0, "out.%J"
    desk.client.histories = [a_history(), element, waiting, filed]
    said = [line for line in desk.type("bhist", "-l", "-a").out.splitlines() if "bpeek" in line]
    assert said == [
        "No output file: bpeek 1201 shows its output, also for a while after its end",
        'No output file: bpeek "1201[3]" shows its output, also for a while after its end',
    ]


def test_bhist_long_is_silent_on_output_that_came_by_mail(desk: Desk, tmp_path: Path) -> None:
    """The site sends mails; the tasks of a job have none."""
    (tmp_path / "agent.lsf").mkdir()
    (tmp_path / "agent.lsf" / "lsf.conf").write_text("LSB_MAILPROG=/usr/sbin/sendmail\n")
    desk.environ["LAVA_SOCKET"] = str(tmp_path / "agent.sock")
    of_tasks = a_history()
    of_tasks.job = 1202
    of_tasks.record.spec.tasks.SetInParent()
    desk.client.histories = [a_history(), of_tasks]
    said = [line for line in desk.type("bhist", "-l", "-a").out.splitlines() if "bpeek" in line]
    assert said == ["No output file: bpeek 1202 shows its output, also for a while after its end"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [(["7"], "No matching job found"), (["-J", "nosuch"], "No matching job found"), ([], "No unfinished job found")],
)
def test_bhist_of_nothing(desk: Desk, argv: list[str], sentence: str) -> None:
    """lsf.md 1.6."""
    result = desk.type("bhist", *argv)
    assert (result.code, result.out, result.err) == (255, "", sentence + "\n")
