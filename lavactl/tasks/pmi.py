"""Server side of PMI-1 as MPICH's ranks use it: key-value space, barriers, and the mapping of ranks to hosts.

Pure: ``Pmi.hear`` takes a rank's bytes and returns the answers with their ranks. One line is one message of
blank-separated ``name=value`` words; the last value may contain anything. Invariants: a barrier opens when every rank
is in it; a rank that was initialised and ends without ``finalize`` is a failure of the whole program; no input of a
rank raises an exception here.
"""

from collections import Counter
from itertools import groupby

KVS_NAME = "kvs_lava_0"
_MAPPING_KEY = "PMI_process_mapping"
_NAME_MAX, _KEY_MAX, _VALUE_MAX = 256, 64, 4096
_LINE_MAX = 64 << 10

Answers = list[tuple[int, bytes]]


def process_mapping(hosts: list[str]) -> str:
    """Rank-to-host mapping for ranks 0, 1, ... on ``hosts``: (vector,(node, nodes, ranks each),...)."""
    numbers: dict[str, int] = {}
    runs = []
    for host, run in groupby(hosts):
        node = numbers.setdefault(host, len(numbers))
        runs.append(f"({node},1,{len(list(run))})")
    return f"(vector,{','.join(runs)})"


def rank_environments(hosts: list[str]) -> list[dict[str, str]]:
    """Environment variables of each rank, besides its PMI descriptor."""
    on_host = Counter(hosts)
    before: Counter[str] = Counter()
    environments = []
    for rank, host in enumerate(hosts):
        environments.append(
            {
                "PMI_RANK": str(rank),
                "PMI_SIZE": str(len(hosts)),
                "MPI_LOCALRANKID": str(before[host]),
                "MPI_LOCALNRANKS": str(on_host[host]),
            }
        )
        before[host] += 1
    return environments


class Pmi:
    """The process manager of one parallel program."""

    def __init__(self, hosts: list[str]) -> None:
        self.size = len(hosts)
        self.aborted: tuple[int, int, str] | None = None  # rank, exit code, message
        self._values = {_MAPPING_KEY: process_mapping(hosts)}
        self._partial = [b""] * self.size
        self._spawning = [False] * self.size
        self._begun: set[int] = set()
        self._finished: set[int] = set()
        self._waiting: list[int] = []

    def hear(self, rank: int, data: bytes) -> Answers:
        """Process bytes written by a rank; return the answers, each with its rank."""
        *lines, rest = (self._partial[rank] + data).split(b"\n")
        if len(rest) > _LINE_MAX:
            self.aborted = self.aborted or (rank, 1, "the rank wrote something that is not PMI")
            rest = b""
        self._partial[rank] = rest
        answers: Answers = []
        for line in lines:
            answers += self._message(rank, line.decode("utf-8", "surrogateescape"))
        return answers

    def broke_off(self, rank: int) -> bool:
        """True if a rank that has just ended had not finalized."""
        return rank in self._begun and rank not in self._finished

    def _message(self, rank: int, line: str) -> Answers:
        if self._spawning[rank]:
            self._spawning[rank] = line != "endcmd"
            return [] if self._spawning[rank] else _answer(rank, "cmd=spawn_result rc=-1 errmsg=spawn_is_not_supported")
        if line.startswith("mcmd="):
            self._spawning[rank] = True
            return []
        words = dict(word.split("=", 1) for word in line.split(" ") if "=" in word)
        match words.get("cmd", ""):
            case "put":
                return self._put(rank, line, words)
            case "get":
                return self._get(rank, words)
            case "barrier_in":
                return self._barrier(rank)
            case "abort":
                self._abort(rank, line, words)
                return []
            case "finalize":
                self._finished.add(rank)
                return _answer(rank, "cmd=finalize_ack rc=0")
            case command:
                return _answer(rank, self._fact(rank, command))

    def _fact(self, rank: int, command: str) -> str:
        match command:
            case "init":
                self._begun.add(rank)
                return "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"
            case "get_maxes":
                return f"cmd=maxes rc=0 kvsname_max={_NAME_MAX} keylen_max={_KEY_MAX} vallen_max={_VALUE_MAX}"
            case "get_appnum":
                return "cmd=appnum rc=0 appnum=0"
            case "get_my_kvsname":
                return f"cmd=my_kvsname rc=0 kvsname={KVS_NAME}"
            case "get_universe_size":
                return f"cmd=universe_size rc=0 size={self.size}"
            case "publish_name" | "unpublish_name" | "lookup_name":
                return f"cmd={command.removesuffix('_name')}_result rc=-1 msg=not_supported"
        return f"cmd={command}_result rc=-1 msg=unknown_command"

    def _put(self, rank: int, line: str, words: dict[str, str]) -> Answers:
        key = words.get("key", "")
        _, found, value = line.partition(" value=")
        if not key or not found or len(value) > _VALUE_MAX:
            return _answer(rank, "cmd=put_result rc=-1 msg=bad_put")
        self._values[key] = value
        return _answer(rank, "cmd=put_result rc=0 msg=success")

    def _get(self, rank: int, words: dict[str, str]) -> Answers:
        value = self._values.get(words.get("key", ""))
        if value is None:
            return _answer(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown")
        return _answer(rank, f"cmd=get_result rc=0 msg=success value={value}")

    def _barrier(self, rank: int) -> Answers:
        if rank not in self._waiting:
            self._waiting.append(rank)
        if len(self._waiting) < self.size:
            return []
        freed, self._waiting = self._waiting, []
        return [answer for rank in freed for answer in _answer(rank, "cmd=barrier_out rc=0")]

    def _abort(self, rank: int, line: str, words: dict[str, str]) -> None:
        code = words.get("exitcode", "")
        message = line.partition(" message=")[2]
        self.aborted = self.aborted or (rank, int(code) if code.lstrip("-").isdecimal() else 1, message)


def _answer(rank: int, line: str) -> Answers:
    return [(rank, line.encode("utf-8", "surrogateescape") + b"\n")]
