"""Cost of long listings: `bjobs -l -a` and others over a large array, the master's part of it, and bsub meanwhile.

The array waits first (its queue is inactive), then is killed and listed as ended. CPU is that of lavad alone, to the
nanosecond. `bsub` is timed alone and beside the listing, in turns, so that other load of the machine affects both.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks import submitting
from benchmarks.figures import Figures, percentile
from benchmarks.personal import Personal, cluster
from lavactl.wire.connection import Connection

ELEMENTS = 100_000
ALONE = 20
FORMS = {
    "l": ["-l"],
    "UF": ["-UF"],
    "o_memlimit": ["-o", "jobid jobindex memlimit"],
    "o_resreq": ["-o", "jobid combined_resreq"],
    "table": [],
}


def cpu_s(pid: int) -> float:
    """CPU time of a process."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _submission(stream: submitting.SubmitStream) -> float:
    """Time of a submission for master and agent alone: one job on an open stream."""
    began = time.perf_counter()
    submitting.submit_one(stream, submitting.spec("/bin/true", hold=True))
    return time.perf_counter() - began


def _bsub(personal: Personal) -> float:
    began = time.perf_counter()
    command = personal.command("bsub", "-H", "true")
    quiet = subprocess.DEVNULL
    subprocess.run(command, check=True, env=personal.environment, stdout=quiet, stderr=quiet)
    return time.perf_counter() - began


class _Beside(threading.Thread):
    """Thread that submits repeatedly until it is stopped."""

    def __init__(self, personal: Personal) -> None:
        super().__init__()
        self._personal = personal
        self._stopping = threading.Event()
        self.commands: list[float] = []
        self.submissions: list[float] = []

    def run(self) -> None:
        """Time each bsub, and each submission without the command around it."""
        stream = submitting.SubmitStream(Connection(self._personal.socket))
        while not self._stopping.wait(0.05):
            self.commands.append(_bsub(self._personal))
            self.submissions.append(_submission(stream))
        stream.close()

    def stop(self) -> None:
        """Stop and wait for the last submission."""
        self._stopping.set()
        self.join()


def list_once(figures: Figures, personal: Personal, key: str, words: list[str], count: int) -> None:
    """One listing of this many jobs: wall time, lavad's CPU, and bsub beside it."""
    alone = [_bsub(personal) for _ in range(ALONE)]
    stream = submitting.SubmitStream(Connection(personal.socket))
    alone_submissions = [_submission(stream) for _ in range(ALONE)]
    stream.close()
    beside = _Beside(personal)
    beside.start()
    used, began = cpu_s(personal.master_pid), time.perf_counter()
    command = personal.command(*words)
    with tempfile.TemporaryFile() as output:
        listing = subprocess.Popen(command, env=personal.environment, stdout=output)
        _, status, spent = os.wait4(listing.pid, 0)
        listing.returncode = os.waitstatus_to_exitcode(status)
        took, used = time.perf_counter() - began, cpu_s(personal.master_pid) - used
        printed = os.fstat(output.fileno()).st_size
    if listing.returncode:
        raise RuntimeError(f"{command} ended with exit code {listing.returncode}")
    figures.put(f"list_{key}_s", took)
    figures.put(f"list_{key}_command_cpu_s", spent.ru_utime + spent.ru_stime)
    figures.put(f"list_{key}_mib", printed / (1 << 20))
    figures.put(f"list_{key}_master_us_each", used / count * 1e6)
    beside.stop()
    figures.put(f"list_{key}_bsub_alone_ms", statistics.median(alone) * 1000)
    figures.put(f"list_{key}_bsub_beside_ms", statistics.median(beside.commands) * 1000)
    figures.put(f"list_{key}_bsub_beside_p90_ms", percentile(beside.commands, 90) * 1000)
    figures.put(f"list_{key}_submission_alone_ms", statistics.median(alone_submissions) * 1000)
    figures.put(f"list_{key}_submission_beside_ms", statistics.median(beside.submissions) * 1000)


def beside_a_computation(figures: Figures, personal: Personal) -> None:
    """bsub beside a process that only computes, as the listing command does: the delay that is not the master's."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        samples = [_bsub(personal) for _ in range(ALONE)]
    finally:
        busy.kill()
        busy.wait()
    figures.put("list_bsub_beside_computation_ms", statistics.median(samples) * 1000)


def measure(figures: Figures, elements: int = ELEMENTS) -> None:
    """list_STATE_FORM_...: seconds in total, microseconds of lavad's CPU for each element."""
    with cluster(2, 4) as personal:
        params = f"Begin Parameters\nMAX_JOB_ARRAY_SIZE = {elements}\nEnd Parameters\n"
        (personal.directory / "lsb.params").write_text(params)
        _run(personal, "badmin", "reconfig")
        _run(personal, "badmin", "qinact", "normal")
        connection = Connection(personal.socket)
        spec = submitting.spec("/bin/true", name="sweep", array=submitting.array(elements), memory_limit_mib=512)
        job = submitting.submit_all(connection, [spec])[0]
        beside_a_computation(figures, personal)
        for form, words in FORMS.items():
            list_once(figures, personal, f"waiting_{form}", ["bjobs", "-a", *words, str(job)], elements)
        _run(personal, "bkill", str(job))
        list_once(figures, personal, "ended_l", ["bjobs", "-a", "-l", str(job)], elements)


def _run(personal: Personal, *words: str) -> None:
    subprocess.run(personal.command(*words), check=True, env=personal.environment, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.listing", description=__doc__)
    parser.add_argument("--elements", type=int, default=ELEMENTS)
    figures = Figures()
    measure(figures, parser.parse_args().elements)
    figures.keep()


if __name__ == "__main__":
    main()
