"""Throughput of an agent without a master: short jobs a second, with journal, shepherds, output file and report.

Prints key=value lines: jobs per second of each run, CPU per job of agent and shepherds, and for comparison the rate at
which two plain processes spawn the same command on this machine. Run it as root for the full path (control groups,
another user):

    python -m benchmarks.agent_spawn --jobs 2000 --slots 64 --user ann
"""

import argparse
import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agents.assembly import Local
from agents.job_setup.host_context import HostContext
from protos.agents_pb2 import JobSpecBlob, Order, Orders, Report, Stage
from protos.common_pb2 import AttemptKey, HostShare, Role
from protos.jobs_pb2 import JobSpec

HOST = "bench"


def blob(job: int, command: str, user: pwd.struct_passwd, out: Path, variables: int) -> JobSpecBlob:
    """Array of short jobs, each with an output file of its own and an ordinary environment."""
    environment = [f"VARIABLE_{number}=some value of ordinary length {number}".encode() for number in range(variables)]
    environment.append(b"PATH=/usr/local/bin:/usr/bin:/bin")
    spec = JobSpec(
        name="bench",
        command=command,
        cwd=str(out),
        output=str(out / "out.%I"),
        environment=environment,
        roles=[Role(tasks_min=1, tasks_max=1)],
    )
    return JobSpecBlob(job=job, spec=spec, user=user.pw_name, uid=user.pw_uid, gid=user.pw_gid, version=1)


async def run(local: Local, one: JobSpecBlob, jobs: int, slots: int) -> float:
    """Start jobs as slots become free; jobs per second."""
    keeper = local.keeper
    free, ended = asyncio.Semaphore(slots), asyncio.Event()
    left = jobs

    def say(report: Report) -> None:
        nonlocal left
        if report.HasField("finished"):
            assert report.finished.status == 0, report
            done.append(report.key)
            left -= 1
            free.release()
            if not left:
                ended.set()

    keeper.say = say
    done: list[AttemptKey] = []
    stage = Stage(allocation=[HostShare(host=HOST, slots=1)], launch_now=True, spec_version=1)
    began, index = time.perf_counter(), 0
    while index < jobs:
        batch = Orders(term=1, specs=[] if index else [one], echo_monotonic=time.clock_gettime(time.CLOCK_BOOTTIME))
        await free.acquire()
        while True:
            index += 1
            batch.orders.append(Order(key=AttemptKey(job=one.job, index=index, attempt=1), stage=stage))
            if index == jobs or free.locked():
                break
            await free.acquire()
        batch.forget.extend(done)
        done.clear()
        await keeper.take(batch)
        await asyncio.sleep(0.003)
    await ended.wait()
    return jobs / (time.perf_counter() - began)


def make_directory(path: Path, user: pwd.struct_passwd) -> Path:
    """Make a directory owned by the user."""
    path.mkdir()
    os.chown(path, user.pw_uid, user.pw_gid)
    return path


def raw_rate(command: str, seconds: float = 1.5) -> float:
    """Spawns per second of `sh -c command` by two processes that do nothing else."""
    loop = (
        "import os,sys,time\nend=time.time()+float(sys.argv[2]);n=0\nwhile time.time()<end:\n"
        " os.waitpid(os.posix_spawn('/bin/sh',['sh','-c',sys.argv[1]],{}),0);n+=1\nprint(n)"
    )
    both = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", loop, command, str(seconds)], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    return sum(int(one.communicate()[0]) for one in both) / seconds


def scheduled_s(pid: int) -> float:
    """CPU time of a process, in nanosecond steps: the tick-based counters miss short work."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


async def main_async(options: argparse.Namespace, state: Path) -> None:
    user = pwd.getpwnam(options.user) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    context = HostContext(HOST, str(state / "agent.sock"), "/usr/bin", "", has_gpus=False, oversubscribed=False)
    local = Local(context, state / "state", options.slots)
    await local.start()
    rates = []
    try:
        for number in range(1, options.runs + 1):
            out = make_directory(state / f"out{number}", user)
            one = blob(number, options.command, user, out, options.variables)
            shepherds = [handle.pid for handle in local.pool.handles()]
            before = time.process_time(), sum(map(scheduled_s, shepherds))
            rates.append(await run(local, one, options.jobs, options.slots))
            shepherds_s = sum(map(scheduled_s, shepherds)) - before[1]
            agent_s = time.process_time() - before[0]
            raw = raw_rate(options.command)
            print(
                f"run={number} jobs_per_s={rates[-1]:.0f} agent_ms_per_job={agent_s / options.jobs * 1e3:.3f} "
                f"shepherds_ms_per_job={shepherds_s / options.jobs * 1e3:.3f} raw_spawns_per_s={raw:.0f} "
                f"ratio={rates[-1] / raw:.2f}",
                flush=True,
            )
    finally:
        await local.close()
    print(f"jobs_per_s_best={max(rates):.0f}")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--variables", type=int, default=30)
    parser.add_argument("--command", default="/bin/true")
    parser.add_argument("--user", default="nobody", help="whose jobs, when run as root")
    parser.add_argument("--directory", help="where the temporary files go")
    options = parser.parse_args()
    state = Path(tempfile.mkdtemp(prefix="lava-bench-", dir=options.directory))
    state.chmod(0o711)
    try:
        asyncio.run(main_async(options, state))
    finally:
        shutil.rmtree(state)


if __name__ == "__main__":
    main()
