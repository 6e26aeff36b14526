"""PMI-1 as pure requests and answers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavactl.tasks.pmi import Pmi, process_mapping, rank_environments

ANSWER = re.compile(rb"cmd=[^\n]+ rc=-?\d+[^\n]*\n")


def said(pmi: Pmi, rank: int, *lines: str) -> list[str]:
    """Answers to a rank, as text."""
    answers = pmi.hear(rank, "".join(f"{line}\n" for line in lines).encode())
    assert all(answered == rank for answered, _ in answers)
    return [answer.decode().rstrip("\n") for _, answer in answers]


def test_a_rank_learns_the_facts() -> None:
    """The questions every MPICH asks when it starts."""
    pmi = Pmi(["a", "a", "b"])
    assert said(pmi, 0, "cmd=init pmi_version=1 pmi_subversion=1") == [
        "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"
    ]
    assert said(pmi, 0, "cmd=get_maxes") == ["cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=4096"]
    assert said(pmi, 0, "cmd=get_appnum") == ["cmd=appnum rc=0 appnum=0"]
    assert said(pmi, 0, "cmd=get_universe_size") == ["cmd=universe_size rc=0 size=3"]
    assert said(pmi, 0, "cmd=finalize") == ["cmd=finalize_ack rc=0"]


def test_a_value_is_everything_after_its_name() -> None:
    """Business cards hold blanks and equal signs."""
    pmi = Pmi(["a", "b"])
    name = said(pmi, 0, "cmd=get_my_kvsname")[0].partition("kvsname=")[2]
    value = "description#h1$port#5=6 ifname#10.0.0.1$ value=again"
    assert said(pmi, 0, f"cmd=put kvsname={name} key=P0-card value={value}") == ["cmd=put_result rc=0 msg=success"]
    assert said(pmi, 1, f"cmd=get kvsname={name} key=P0-card") == [f"cmd=get_result rc=0 msg=success value={value}"]
    assert said(pmi, 1, f"cmd=get kvsname={name} key=nothing") == [
        "cmd=get_result rc=-1 msg=key_not_found value=unknown"
    ]


def test_a_barrier_opens_when_all_are_in() -> None:
    """And can be used again."""
    pmi = Pmi(["a", "b", "c"])
    for _ in range(2):
        assert pmi.hear(2, b"cmd=barrier_in\n") == []
        assert pmi.hear(0, b"cmd=barrier_in\n") == []
        assert sorted(pmi.hear(1, b"cmd=barrier_in\n")) == [(rank, b"cmd=barrier_out rc=0\n") for rank in range(3)]


def test_lines_may_come_in_any_pieces() -> None:
    """A socket keeps no borders between messages."""
    pmi = Pmi(["a"])
    line = b"cmd=put kvsname=k key=x value=1 2\ncmd=get kvsname=k key=x\n"
    answers = [answer for octet in line for answer in pmi.hear(0, bytes([octet]))]
    assert [answer for _, answer in answers] == [
        b"cmd=put_result rc=0 msg=success\n",
        b"cmd=get_result rc=0 msg=success value=1 2\n",
    ]


@pytest.mark.parametrize(
    ("hosts", "mapping"),
    [
        (["a", "a", "b", "b"], "(vector,(0,1,2),(1,1,2))"),
        (["a"], "(vector,(0,1,1))"),
        (["a", "b", "a"], "(vector,(0,1,1),(1,1,1),(0,1,1))"),
        (["a", "a", "a", "b"], "(vector,(0,1,3),(1,1,1))"),
    ],
)
def test_ranks_can_ask_who_shares_a_host(hosts: list[str], mapping: str) -> None:
    """The mapping is present before any rank puts a value."""
    assert process_mapping(hosts) == mapping
    assert said(Pmi(hosts), 0, "cmd=get kvsname=kvs_lava_0 key=PMI_process_mapping") == [
        f"cmd=get_result rc=0 msg=success value={mapping}"
    ]


def test_each_rank_knows_its_place_on_its_host() -> None:
    """Local rank and number of local ranks."""
    places = [(own["MPI_LOCALRANKID"], own["MPI_LOCALNRANKS"]) for own in rank_environments(["a", "b", "a", "a"])]
    assert places == [("0", "3"), ("0", "1"), ("1", "3"), ("2", "3")]


def test_an_abort_is_kept_with_its_reason() -> None:
    """The first one counts."""
    pmi = Pmi(["a", "b"])
    assert pmi.hear(1, b"cmd=abort exitcode=6 message=out of luck\n") == []
    pmi.hear(0, b"cmd=abort exitcode=9\n")
    assert pmi.aborted == (1, 6, "out of luck")


def test_a_rank_that_leaves_without_goodbye_is_noticed() -> None:
    """Only between init and finalize."""
    pmi = Pmi(["a"] * 3)
    pmi.hear(0, b"cmd=init pmi_version=1 pmi_subversion=1\n")
    pmi.hear(1, b"cmd=init pmi_version=1 pmi_subversion=1\ncmd=finalize\n")
    assert [pmi.broke_off(rank) for rank in range(3)] == [True, False, False]


def test_spawning_is_refused_in_words() -> None:
    """A command of several lines gets one answer, at its end."""
    pmi = Pmi(["a"])
    assert pmi.hear(0, b"mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=1\n") == []
    assert said(pmi, 0, "endcmd") == ["cmd=spawn_result rc=-1 errmsg=spawn_is_not_supported"]
    assert said(pmi, 0, "cmd=get_appnum") == ["cmd=appnum rc=0 appnum=0"]


def test_an_unknown_command_is_refused_in_words() -> None:
    """The rank gets an error instead of waiting for ever."""
    assert said(Pmi(["a"]), 0, "cmd=dance") == ["cmd=dance_result rc=-1 msg=unknown_command"]


def test_a_rank_that_writes_no_lines_is_an_abort() -> None:
    """Memory is bounded."""
    pmi = Pmi(["a"])
    pmi.hear(0, bytes(70_000))
    assert pmi.aborted is not None


@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=60)), max_size=30))
def test_nothing_a_rank_writes_breaks_the_server(pieces: list[tuple[int, bytes]]) -> None:
    """Any bytes, from any rank: answers are whole lines for existing ranks, and the next rank is served."""
    pmi = Pmi(["a", "b", "b", "c"])
    answers = [answer for rank, data in pieces for answer in pmi.hear(rank, b"cmd=" + data + b"\n")]
    assert [answer for rank, answer in answers if rank not in range(4) or not ANSWER.fullmatch(answer)] == []
    assert said(pmi, 3, "cmd=get_universe_size") == ["cmd=universe_size rc=0 size=4"]
