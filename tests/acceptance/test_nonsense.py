"""Malformed arguments of every command against a real cluster: one sentence, a non-zero exit code, no traceback."""

import re

import pytest

from tests.acceptance.personal import Cluster

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

COMMON = (["-zzz"], ["--bogus"], ["-\x1b[2J"], ["\x1b[31mred\nline"])
NONSENSE: dict[str, tuple[list[str], ...]] = {
    "bsub": (
        ["-n", "0", "true"], ["-n", "x", "true"], ["-n", "5,2", "true"], ["-W", "-1", "true"], ["-M", "lots", "true"],
        ["-q", "nowhere", "true"], ["-m", "nohost", "true"], ["-R", "span[", "true"], ["-R", "rusage[mem=x]", "true"],
        ["-J", "a[5-1]", "true"], ["-J", "a[1-99999999999]", "true"], ["-w", "done(", "true"], ["-b", "99:99", "true"],
        ["-gpu", "num=-1", "true"], ["-o", "", "true"], ["-sp", "x", "true"], [""], ["-J", "a[1-3]%x", "true"],
        ["-q", "\x1b[2J", "true"], ["-m", "\x1b[2J", "true"], ["-U", "\x1b[2J", "true"],
    ),
    "bjobs": (["notajob"], ["1["], ["0[1]x"], ["-o", "nosuchfield"], ["-q", "nowhere"], ["-J", "nosuch"]),
    "bkill": (["notajob"], ["999999"], ["-s", "NOSUCH", "1"], ["1[2-1]"], []),
    "bstop": (["notajob"], ["999999"], []),
    "bresize": (["release", "all", "999999"], ["grow", "1"], ["request", "many", "1"], ["cancel"], []),
    "bresume": (["notajob"], ["999999"], []),
    "bmod": (
        ["notajob"], ["-W", "10", "notajob"], ["-W", "10", "999999"], ["-W", "x", "1"], ["1"], [], ["-J", "%0", "1"],
        ["-J", "a[1-3]", "1"], ["-w", "done(", "999999"], ["-Zn", "1"],
    ),
    "bswitch": (["nowhere", "999999"], ["normal", "notajob"], ["normal"], []),
    "btop": (["notajob"], ["999999"], ["999999", "0"], ["999999", "x"], ["0"], []),
    "bbot": (["notajob"], ["999999"], ["1", "2", "3"], []),
    "brequeue": (["notajob"], ["999999"], []),
    "brun": (["notajob"], ["999999"], ["-m", "nohost", "999999"], ["-m", "n#x", "1"], ["-m", "", "1"], []),
    "bpeek": (["notajob"], ["999999"], ["1", "2"], ["-J", "a\x1b[2J"]),
    "bhist": (["notajob"], ["999999"], ["-l", "-w"]),
    "bacct": (["notajob"], ["999999"], ["0"], ["-C", "yesterday"], ["-N", "nothing"], ["-f", "/nowhere"], ["-b", "-l"]),
    "bqueues": (["nowhere"],),
    "bhosts": (["nohost"],),
    "lsload": (["nohost"],),
    "lshosts": (["nohost"],),
    "lsid": (),
    "blaunch": (["true"], ["nohost", "true"], []),
    "lavarun": (["true"], ["-n", "x", "true"], []),
    "badmin": (
        ["nonsense"], ["qopen", "nowhere"], ["hclose", "nohost"], ["reconfig", "x"], ["mbdrestart", "x"], ["help", "x"],
    ),
    "busers": (["nobody-here"],),
    "bugroup": (["nowhere"],),
    "bmgroup": (["nowhere"],),
    "bhpart": (["nowhere"],),
    "bparams": (["x"],),
    "blimits": (["nowhere"],),
    "bresources": (["-g", "nowhere"], ["-g"], ["-g", "-l", "-q", "nowhere"], ["lab"], ["-s"]),
    "lsclusters": (["nowhere"],),
    "brsvadd": (["-n", "1", "-m", "\x1b[2J", "-u", "root", "-b", "23:00", "-e", "23:30"], []),
    "brsvdel": (["\x1b[2J"], []),
    "brsvmod": (["-d", "x", "\x1b[2J"], []),
    "brsvs": (["\x1b[2J"],),
    "lsadmin": (["nonsense"], ["limstartup"], ["reconfig", "x"], ["help", "x"]),
    "lavactl": (
        ["up", "--hosts", "x"], ["up", "--slots", "0"], ["up", "--db", "mysql://x"], ["env", "x"], ["nonsense"], [],
    ),
}  # fmt: skip
CASES = [
    pytest.param(name, argv, id=f"{name} {' '.join(argv)!a}")
    for name, several in NONSENSE.items()
    for argv in (*several, *COMMON)
    if (name, argv) != ("bsub", COMMON[-1])  # a shell may well make sense of it
]


@pytest.fixture(scope="module")
def quiet_cluster(shared_cluster: Cluster) -> Cluster:
    """The shared cluster; these tests do not change it."""
    shared_cluster.complete()
    return shared_cluster


@pytest.mark.parametrize(("name", "argv"), CASES)
def test_nonsense_is_answered_with_a_sentence(quiet_cluster: Cluster, name: str, argv: list[str]) -> None:
    """On standard error, with at most the usage after it."""
    done = quiet_cluster.run(name, *argv, stdin="")
    assert done.returncode != 0
    assert "Traceback" not in done.stdout + done.stderr
    assert not re.search(r"unexpected \w+(Error|Exception)", done.stderr)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", done.stdout + done.stderr)
    sentence, _, rest = done.stderr.partition("\n")
    assert len(sentence) > 8
    assert " " in sentence
    assert not rest or "Usage:" in rest, done.stderr
