"""bsub -hostfile: the user names hosts and slots line by line (lsf.md 1.2, `-m` and its row)."""

from pathlib import Path

import pytest

from tests.lavactl.scripted import Desk


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
