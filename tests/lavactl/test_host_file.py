"""bsub -hostfile: the user names hosts and slots line by line (lsf.md 1.2, `-m` and its row)."""

from pathlib import Path

import pytest

from protos import jobs_pb2
from tests.lavactl.scripted import Desk, a_job


def test_hosts_with_as_many_slots_each(desk: Desk, tmp_path: Path) -> None:
    """Any number of them, preferred in the order of the file."""
    (tmp_path / "hosts").write_text("# ours\nn2 2\n\nn1 1\nn1  # again\n")
    desk.type("bsub", "-hostfile", "hosts", "-R", "mem>10", "-R", "rusage[mem=5]", "x", cwd=str(tmp_path))
    role = desk.spec.roles[0]
    assert list(desk.spec.hosts) == ["n2+2", "n1+1"]
    assert (role.tasks_min, role.tasks_max) == (4, 4)
    assert role.requirement == "select[mem>10] rusage[mem=5] span[ptile=2]"


def test_hosts_with_different_slots(desk: Desk, tmp_path: Path) -> None:
    """Each is a term of the requirement, with all that -R asks for."""
    (tmp_path / "hosts").write_text("n2\nn1 3\n")
    desk.type("bsub", "-hostfile", "hosts", "-R", "mem>10", "x", cwd=str(tmp_path))
    role = desk.spec.roles[0]
    assert (role.tasks_min, role.tasks_max) == (4, 4)
    assert role.requirement == (
        '1*{select[mem>10] select[hname=="n2"] span[hosts=1]} + 3*{select[mem>10] select[hname=="n1"] span[hosts=1]}'
    )


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("n1 two\n", (), "line 1: expected a host and perhaps a number of slots, found n1 two."),
        ("n1\nn2 0\n", (), "line 2: expected a host and perhaps a number of slots, found n2 0."),
        ("n1 1 2\n", (), "line 1: expected a host and perhaps a number of slots, found n1 1 2."),
        ("n1||true\n", (), "line 1: expected a host and perhaps a number of slots, found n1||true."),
        ("n1 " + "9" * 5000 + "\n", (), "line 1: expected a host and perhaps a number of slots, found n1 9999"),
        ("".join(f"n{one}\n" for one in range(10_001)), (), "the file names more than 10000 hosts."),
        ("# none\n", (), "the file names no host."),
        (None, (), "the file cannot be read."),
        ("n1\n", ("-n", "2"), "-hostfile and -n cannot be combined: the file names hosts and slots."),
        ("n1\n", ("-m", "n1"), "-hostfile and -m cannot be combined: the file names hosts and slots."),
        ("n1\n", ("-nnodes", "2"), "-hostfile and -nnodes cannot be combined: the file names hosts and slots."),
        ("n1\n", ("-R", "span[hosts=1]"), "-R cannot have span[...] or terms in braces."),
        ("".join(f"n{one} {1 + one % 2}\n" for one in range(65)), (), "65 hosts with different numbers of slots"),
    ],
)
def test_what_is_refused(desk: Desk, tmp_path: Path, text: str | None, options: tuple[str, ...], sentence: str) -> None:
    """With the line, and what was expected."""
    if text is not None:
        (tmp_path / "hosts").write_text(text)
    said = desk.type("bsub", "-hostfile", "hosts", *options, "x", cwd=str(tmp_path))
    assert said.code == 255
    assert sentence in said.err


def submitted(desk: Desk, tmp_path: Path, *options: str) -> jobs_pb2.JobSpec:
    """A job with a host file that names a host twice."""
    (tmp_path / "hosts").write_text("n2 2\nn1 1\nn1  # again\n")
    desk.type("bsub", "-hostfile", "hosts", *options, "x", cwd=str(tmp_path))
    return desk.spec


TABLE = """
 USER-SPECIFIED HOST FILE:
 HOST                SLOTS
 n2                  2
 n1                  1
 n1                  1
"""


def test_the_file_is_kept_and_shown(desk: Desk, tmp_path: Path) -> None:
    """LSF's manual of bjobs: its path in -l and -o host_file, its lines with -hostfile, in bhist, too."""
    spec = submitted(desk, tmp_path)
    desk.client.jobs = [a_job(spec=spec), a_job(job=1202)]
    path = f"{tmp_path}/hosts"
    shown = desk.type("bjobs", "-UF", "-hostfile").out
    assert f", Host file <{path}>" in shown
    assert "Specified Hosts" not in shown
    assert shown.count(TABLE) == shown.count("HOST FILE") == 1
    assert "HOST FILE" not in desk.type("bjobs", "-l").out
    assert desk.type("bjobs", "-noheader", "-o", "host_file").out == f"{path}\n-\n"
    desk.client.histories = [jobs_pb2.JobHistory(job=1201, user="alice", record=desk.client.jobs[0])]
    told = desk.type("bhist", "-UF", "-hostfile").out
    assert "Host file <" in told
    assert told.endswith(TABLE)


@pytest.mark.parametrize("argv", [["bjobs", "-hostfile"], ["bhist", "-hostfile", "-w"]])
def test_it_goes_with_the_long_form(desk: Desk, argv: list[str]) -> None:
    """No other form has a place for it."""
    assert desk.type(*argv).err.startswith(f"{argv[0]}: -hostfile needs -l")


def test_bmod_gives_a_job_a_host_file(desk: Desk, tmp_path: Path) -> None:
    """The -R of the submission stays, unless -R is given anew."""
    spec = submitted(desk, tmp_path)
    desk.client.modify_reply.results.add(job=7)
    desk.client.jobs = [a_job(job=7, spec=jobs_pb2.JobSpec(requirement_text="mem>10"))]
    assert desk.type("bmod", "-hostfile", "hosts", "7", cwd=str(tmp_path)).code == 0
    asked = desk.client.asked[-1]
    assert {"host_file", "hosts", "roles.requirement", "roles.tasks"} <= set(asked.fields)
    assert asked.spec.roles[0].requirement == "select[mem>10] span[ptile=2]"
    assert (list(asked.spec.hosts), asked.spec.roles[0].tasks_min) == (["n2+2", "n1+1"], 4)
    assert (asked.spec.host_file.hosts, asked.spec.host_file.requirement) == (spec.host_file.hosts, "mem>10")
    desk.type("bmod", "-hostfile", "hosts", "-R", "swp>1", "7", cwd=str(tmp_path))
    assert desk.client.asked[-1].spec.roles[0].requirement == "select[swp>1] span[ptile=2]"


def test_bmod_removes_a_host_file(desk: Desk, tmp_path: Path) -> None:
    """The hosts are free again; what -R asked for stays, and the number of slots."""
    desk.client.modify_reply.results.add(job=7)
    for options, requirement in (((), ""), (("-R", "mem>10"), "mem>10")):
        desk.client.jobs = [a_job(job=7, spec=submitted(desk, tmp_path, *options))]
        assert desk.type("bmod", "-hostfilen", "7").code == 0
        asked = desk.client.asked[-1]
        assert sorted(asked.fields) == ["hosts", "requirement_text", "roles.requirement"]
        assert (list(asked.spec.hosts), asked.spec.requirement_text) == ([], requirement)
    desk.client.jobs = [a_job(job=7)]
    refused = desk.type("bmod", "-hostfilen", "7")
    assert (refused.code, refused.err) == (255, "Job <7>: it has no host file. Job not modified.\n")
