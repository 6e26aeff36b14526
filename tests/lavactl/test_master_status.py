"""Golden output of badmin showconf, showstatus and mbdrestart."""

import pytest

from protos import cluster_pb2
from tests.lavactl.scripted import Desk, at
from tests.lavactl.test_cluster_commands import a_host


def test_showconf(desk: Desk) -> None:
    """lsf-clients.md, snakemake: a title, then ``  KEY = VALUE`` lines without a blank one."""
    reply = desk.client.installation_reply
    for name, value in (("LSB_SHAREDIR", "/share"), ("LSF_CONFDIR", "/conf")):
        reply.parameters.add(name=name, value=value)
    result = desk.type("badmin", "showconf", "mbd")
    assert (result.code, result.err) == (0, "")
    assert result.out == ("MBD configuration at Sat Nov 21 09:30:00\n  LSB_SHAREDIR = /share\n  LSF_CONFDIR = /conf\n")


def test_showconf_of_all(desk: Desk) -> None:
    """Monitoring programs ask for mbd of all hosts: there is one."""
    desk.client.installation_reply.parameters.add(name="LSF_CONFDIR", value="/conf")
    result = desk.type("badmin", "showconf", "mbd", "all")
    assert (result.code, result.out.splitlines()[1:]) == (0, ["  LSF_CONFDIR = /conf"])


def test_showconf_of_lim(desk: Desk) -> None:
    """lsadmin showconf: the settings of all hosts are those of the master."""
    desk.client.installation_reply.parameters.add(name="LSF_CONFDIR", value="/conf")
    result = desk.type("lsadmin", "showconf", "lim")
    assert result.out == "LIM configuration at Sat Nov 21 09:30:00\n  LSF_CONFDIR = /conf\n"
    wrong = desk.type("lsadmin", "showconf", "lim", "n001")
    assert wrong.code == 255
    assert wrong.err.startswith("lsadmin showconf: expected lim, without hosts: all hosts have the settings of the ")


def test_showconf_of_hosts(desk: Desk) -> None:
    """They have no settings of their own."""
    result = desk.type("badmin", "showconf", "sbd")
    assert result.code == 255
    assert result.err.startswith("badmin showconf: only mbd has settings of its own; hosts follow the master\n")


def test_showstatus(desk: Desk) -> None:
    """lsf.md 1.8: hosts, jobs, users, and since when."""
    desk.client.host_records = [
        a_host("n001", cores=16, sockets=2, slots=32),
        a_host("n002", "closed_Full", cores=16, sockets=2, slots=32),
        a_host("n003", "unavail", cores=16, sockets=2, slots=32),
        a_host("login1", server=False),
    ]
    desk.client.status_reply = cluster_pb2.StatusReply(
        pid=4711, started=at("09:00:00"), running=5, suspended=1, pending=10, finished=4, users=3, running_users=2,
        user_groups=1,
    )  # fmt: skip
    assert (
        desk.type("badmin", "showstatus").out
        == """\
LSF runtime mbatchd information
    Available local hosts (current/peak):
      Clients:                           1/1
      Servers:                           2/3
      CPUs:                              4/6
      Cores:                             32/48
      Slots:                             64/96

    Number of servers:                   3
      Ok:                                1
      Closed:                            1
      Unreachable:                       0
      Unavailable:                       1

    Number of jobs:                      20
      Running:                           5
      Suspended:                         1
      Pending:                           10
      Finished:                          4

    Number of users:                     3
    Number of user groups:               1
    Number of active users:              2

    Latest mbatchd start:                Sat Nov 21 09:00:00
    Active mbatchd PID:                  4711
    Latest mbatchd reconfiguration:      -
"""
    )


@pytest.mark.parametrize("verb", ["reconfig", "mbdrestart"])
def test_the_master_takes_on_new_files_without_ending(desk: Desk, verb: str) -> None:
    """mbdrestart does the same as reconfig; the comment of -C goes with it."""
    desk.client.configure_reply.applied = True
    assert desk.type("badmin", verb, "-C", "new limits").out.endswith("Reconfiguration initiated\n")
    assert (desk.client.asked[-1].apply, desk.client.asked[-1].comment) == (True, "new limits")
