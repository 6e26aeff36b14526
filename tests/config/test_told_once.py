"""One mistake gives one complaint, at its place: its consequences are not reported as well."""

from pathlib import Path

from tests.config.files import loaded, policy_of, said

QUEUES = """\
    Begin Queue
    QUEUE_NAME = short
    PRIORITY = 40
    End Queue
    Begin Queue
    QUEUE_NAME = long
    PREEMPTION = PREEMPTABLE[short]
    End Queue
    """
PARAMETERS = "Begin Parameters\nDEFAULT_QUEUE = short long\nEnd Parameters\n"


def _said_of(tmp_path: Path, old: str, new: str) -> list[str]:
    """Complaints about the two queues with one line changed, where other files refer to both."""
    assert old in QUEUES
    return said(loaded(tmp_path, {"lsb.queues": QUEUES.replace(old, new, 1), "lsb.params": PARAMETERS}))


def test_a_missing_end(tmp_path: Path) -> None:
    """lsb.params and the other queue still know the queue."""
    assert _said_of(tmp_path, "    End Queue\n", "") == [
        "lsb.queues:1: 'Begin Queue' has no 'End Queue' before 'Begin Queue' on line 4"
    ]


def test_a_misspelt_end(tmp_path: Path) -> None:
    """The line itself is shown."""
    assert _said_of(tmp_path, "End Queue", "Edn Queue") == ["lsb.queues:4: expected 'End Queue', found 'Edn Queue'"]


def test_a_missing_begin(tmp_path: Path) -> None:
    """Reported once, not for each line."""
    assert _said_of(tmp_path, "Begin Queue\n", "\n") == [
        "lsb.queues:2: expected 'Begin Queue' before this line: 'End Queue' is on line 4"
    ]


def test_a_misspelt_begin(tmp_path: Path) -> None:
    """The line itself is shown."""
    assert _said_of(tmp_path, "Begin Queue", "Begn Queue") == [
        "lsb.queues:1: expected 'Begin Queue', found 'Begn Queue'"
    ]


def test_an_if_without_an_end(tmp_path: Path) -> None:
    """The lines after it are read: only the #if is reported."""
    for old in ("    Begin Queue\n", "    PRIORITY = 40\n"):
        lines = _said_of(tmp_path, old, f"    #if time(9:00-17:00)\n{old}")
        assert len(lines) == 1
        assert lines[0].endswith(": #if: this one has no #endif")


def test_an_else_without_an_end(tmp_path: Path) -> None:
    """The other branch ends with its section."""
    lines = _said_of(
        tmp_path, "PRIORITY = 40\n", "#if time(9:00-17:00)\n    PRIORITY = 9\n    #else\n    PRIORITY = 40\n"
    )
    assert [line.split(": ")[:2] for line in lines] == [["lsb.queues:3", "#if"]]


def test_a_block_that_depends_on_the_time(tmp_path: Path) -> None:
    """References to a queue within it are wrong at other times; a block that cannot be read is told once."""
    whole = QUEUES.replace("    Begin", "    #if time(8:00-18:00)\n    Begin", 1).replace(
        "    End Queue\n", "    End Queue\n    #endif\n", 1
    )
    again = QUEUES.replace("PRIORITY = 40\n", "PRIORITY = 40\n    #if tme(1)\n    PRIORITY = 9\n    #endif\n")
    assert said(loaded(tmp_path, {"lsb.queues": whole, "lsb.params": PARAMETERS})) == [
        "lsb.params:2: DEFAULT_QUEUE = short long: short: there is no such queue",
        "lsb.queues:9: PREEMPTION = PREEMPTABLE[short]: short: there is no such queue",
    ]
    lines = said(loaded(tmp_path, {"lsb.queues": again, "lsb.params": PARAMETERS}))
    assert len(lines) == 1, lines
    assert "#if: expected time(begin-end ...)" in lines[0]


def test_comments_that_begin_like_directives(tmp_path: Path) -> None:
    """`# If`, `# else` and `# include` in prose are prose."""
    policy = policy_of(tmp_path, {"lsb.queues": """\
        # If a queue is missing here, ask the operators.
        # Include GPU queues below.
        #if you add one, tell them
        # else they wonder
        Begin Queue
        QUEUE_NAME = normal
        End Queue
        """})  # fmt: skip
    assert [queue.name for queue in policy.queues] == ["normal", "default"]


def test_files_written_on_windows(tmp_path: Path) -> None:
    """Lines may end in CR LF, continued and included ones too."""
    text = 'Begin Queue\nQUEUE_NAME = normal\nDESCRIPTION = two \\\n  lines\n#INCLUDE "more"\nEnd Queue\n'
    files = {"lsb.queues": text, "more": "PRIORITY = 7\n", "lsf.conf": "LSF_UNIT_FOR_LIMITS=MB\n"}
    for name, lines in files.items():
        (tmp_path / name).write_bytes(lines.replace("\n", "\r\n").encode())
    found = loaded(tmp_path)
    assert said(found) == []
    queue = found.policy.queues[0]
    assert (queue.name, queue.description, queue.priority) == ("normal", "two lines", 7)
    assert found.settings == {"LSF_UNIT_FOR_LIMITS": "MB"}
