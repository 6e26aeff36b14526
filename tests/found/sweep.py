"""Continuous submission of an ordinary user's jobs during a fault, and the account of them afterwards.

Each job marks its start and its end by appending to one file, and exits with a code of its own. A job whose number was
acknowledged must start once, with the exit code that it ended with.
"""

import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.personal import Cluster, wait_for

LOOPS = 4
CODES = 7
MARK_TO_EXIT_S = 5.0  # from a job's last mark until its shepherd has its exit code on disk, on a busy machine
LOST_SUPERVISOR = 137  # 128 + SIGKILL: reported exit code of a job killed with its shepherd


@dataclass(frozen=True, slots=True)
class Account:
    """Results of the jobs of one run; ``problems`` names each job with a wrong one."""

    jobs: int
    lost: int
    twice: int
    wrong: int
    killed: int  # without an end mark, and reported so
    problems: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_clean(self) -> bool:
        """True if no job was lost, ran twice, or was reported with a wrong exit code."""
        return not (self.lost or self.twice or self.wrong)


class Sweep:
    """``total`` submissions by several loops of ``bsub``, one after another in each."""

    def __init__(self, cluster: Cluster, marks: Path, total: int, seconds: str = "0.2") -> None:
        self._cluster = cluster
        self._marks = marks
        self._left = total
        self._seconds = seconds
        self._lock = threading.Lock()
        self.told: dict[int, int] = {}  # job -> the code it exits with
        self.killings: list[tuple[float, float]] = []  # from when to when supervisors were killed
        self.refused: list[str] = []
        marks.touch()
        marks.chmod(0o666)
        self._loops = [threading.Thread(target=self._loop, daemon=True) for _ in range(LOOPS)]
        for loop in self._loops:
            loop.start()

    def _take(self) -> int:
        with self._lock:
            self._left -= 1
            return self._left

    def _loop(self) -> None:
        while (number := self._take()) >= 0:
            code = number % CODES
            mark = f'echo "$LSB_JOBID {{}} {code}" >> {self._marks}'
            begin, end = mark.format("start $(date +%s.%N)"), mark.format("end $(date +%s.%N)")
            text = f"{begin}; sleep {self._seconds}; {end}; exit {code}"
            done = self._cluster.run("bsub", "-o", "/dev/null", text, timeout_s=300)
            found = re.search(r"Job <(\d+)> is submitted", done.stdout)
            with self._lock:
                if found:
                    self.told[int(found[1])] = code
                else:
                    self.refused.append(done.stderr.strip())

    @property
    def is_over(self) -> bool:
        """True if all loops have ended."""
        return not any(loop.is_alive() for loop in self._loops)

    def wait_told(self, count: int, limit_s: float = 120) -> None:
        """Wait until this number of jobs has an id."""
        wait_for(lambda: len(self.told) >= count or self.is_over, limit_s, f"{count} jobs to be submitted")

    def finish(self, limit_s: float = 600) -> Account:
        """Wait for all submissions and all ends; the account."""
        for loop in self._loops:
            loop.join(limit_s)
        assert self.is_over, "a bsub has not come back"
        end = time.monotonic() + limit_s
        while self._unended() and time.monotonic() < end:
            time.sleep(0.5)
        return self._account()

    def _states(self) -> dict[int, tuple[str, int]]:
        done = self._cluster.run("bjobs", "-a", "-noheader", "-o", "jobid stat exit_code", timeout_s=120)
        rows = [line.split() for line in done.stdout.splitlines()]
        return {int(row[0]): (row[1], int(row[2]) if row[2].isdigit() else 0) for row in rows if row[0].isdigit()}

    def _unended(self) -> bool:
        states = self._states()
        return any(states.get(job, ("", 0))[0] not in ("DONE", "EXIT", "") for job in self.told)

    def _is_killed(self, ended_at: float) -> bool:
        """True if the job was killed with its shepherd between its last mark and its exit."""
        return any(begin - MARK_TO_EXIT_S <= ended_at <= end for begin, end in self.killings)

    def _account(self) -> Account:
        states = self._states()
        marks = [line.split() for line in self._marks.read_text().splitlines()]
        starts = Counter(int(job) for job, what, _, _ in marks if what == "start")
        ends = {int(job): int(code) for job, what, _, code in marks if what == "end"}
        ended_at = {int(job): float(at) for job, what, at, _ in marks if what == "end"}
        problems: list[str] = []
        lost = wrong = killed = 0
        for job, code in sorted(self.told.items()):
            state, told = states.get(job, ("unknown", 0))
            is_told_killed = state == "EXIT" and told == LOST_SUPERVISOR and bool(self.killings)
            if state not in ("DONE", "EXIT") or not (starts[job] or is_told_killed):
                lost += 1
                problems.append(f"{job} is {state} {told}, started {starts[job]} times")
            elif told == LOST_SUPERVISOR and (job not in ends or self._is_killed(ended_at[job])):
                killed += 1
            elif (state, told) != ("EXIT" if code else "DONE", code):
                wrong += 1
                marked = f"ended with {ends[job]}" if job in ends else "never ended"
                problems.append(f"{job} {marked}, told {state} {told}")
        twice = sorted(job for job, count in starts.items() if count > 1)
        problems += [f"{job} started {starts[job]} times" for job in twice]
        return Account(len(self.told), lost, len(twice), wrong, killed, tuple(problems))
