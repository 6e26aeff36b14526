"""Twenty mistakes as administrators make them, planted into a whole site's directory: each is told with its line."""

import shutil
from pathlib import Path

import pytest

from tests.config.files import SITE, loaded, said

# File, line as it is, line with the mistake.
MISTAKES = (
    ("lsf.conf", "LSF_UNIT_FOR_LIMITS=MB", "LSF_UNIT_FOR_LIMITS=MBytes"),
    ("lsf.shared", "skylake     60.5        (x86_64)", "skylake     fast        (x86_64)"),
    ("lsf.shared", "rack           String    ()         ()", "rack           Text      ()         ()"),
    ("lsf.cluster.mill", "c02        genoa     X86_64    1", "c02        geona     X86_64    1"),
    (
        "lsf.cluster.mill",
        "g02        skylake   X86_64    1        ()    (ib gpu)",
        "g02  skylake  X86_64  1  ()  (ib gpus)",
    ),
    ("lsf.cluster.mill", "lic_flow       (24@[all ~g01])", "lic_flow       (many@[all ~g01])"),
    ("lsb.params", "CLEAN_PERIOD           = 7200", "CLEAN_PERIOD           = 2h"),
    ("lsb.params", "MAX_JOB_ARRAY_SIZE     = 20000", "MAX_JOB_ARRAY_SIZ      = 20000"),
    ("lsb.params", "DEFAULT_QUEUE          = normal short", "DEFAULT_QUEUE          = normel short"),
    ("lsb.queues", "PREEMPTION     = PREEMPTIVE[normal+2 night]", "PREEMPTION     = PREEMPTIVE[normal+2 nigth]"),
    ("lsb.queues", "FAIRSHARE      = USER_SHARES[[science,20]", "FAIRSHARE      = USER_SHARE[[science,20]"),
    ("lsb.queues", "RUNLIMIT       = 4:00 72:00/skylake", "RUNLIMIT       = 72:00 4:00/skylake"),
    ("lsb.queues", "HOSTS          = gpus", "HOSTS          = gpu_hosts"),
    ("lsb.queues", "RES_REQ        = select[gpu] rusage[mem=2000]", "RES_REQ        = select[gpu] rusage[mem=2000"),
    ("lsb.queues", "RUN_WINDOW     = 20:00-07:00 6:00:00-0:23:59", "RUN_WINDOW     = 20:00-07:00 6:00:00-0:24:59"),
    ("lsb.hosts", "compute      (thin fat)          N", "compute      (thin compute)      N"),
    ("lsb.hosts", "m01         48    8      2000/500   ()        ()", "m01         48    8      2000/500   ()"),
    ("lsb.users", "genome       (dan eva)            ()", "genome       (dan eva            ()"),
    ("lsb.users", "ada         256        -      -               -", "ada         256        -      lots            -"),
    ("lsb.resources", "SLOTS_PER_PROCESSOR = 1.5", "SLOTS_PER_PROCESSOR = half"),
)


def plant(directory: Path, mistakes: "tuple[tuple[str, str, str], ...]") -> set[str]:
    """Copy the site with these mistakes; the place of each, as ``file:line``."""
    shutil.copytree(SITE, directory, dirs_exist_ok=True)
    places = set()
    for file, right, wrong in mistakes:
        lines = (directory / file).read_text().split("\n")
        (at,) = [number for number, line in enumerate(lines) if right in line]
        lines[at] = lines[at].replace(right, wrong)
        (directory / file).write_text("\n".join(lines))
        places.add(f"{file}:{at + 1}")
    return places


def places_of(directory: Path) -> set[str]:
    """Places of all complaints."""
    return {":".join(line.split(":")[:2]) for line in said(loaded(directory))}


def test_all_are_told_at_once(tmp_path: Path) -> None:
    """And nothing else is, but what the site is told without them, and what follows from one at another place."""
    site = tmp_path / "site"
    assert len(MISTAKES) == 20
    expected = plant(site, MISTAKES)
    before = places_of(SITE)
    follows = {"lsb.users:13", "lsb.resources:15"}  # a group that could not be read; a limit without an amount
    assert places_of(site) == expected | follows | before


@pytest.mark.parametrize(
    "mistake", MISTAKES, ids=[wrong.split()[0] + str(at) for at, (_, _, wrong) in enumerate(MISTAKES)]
)
def test_each_alone_is_told(tmp_path: Path, mistake: tuple[str, str, str]) -> None:
    """At its line, whatever else follows from it."""
    (place,) = plant(tmp_path / "site", (mistake,))
    assert place in places_of(tmp_path / "site")
