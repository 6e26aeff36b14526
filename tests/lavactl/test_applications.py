"""bapp, and -app of other commands: requests and golden output (lsf.md 1.2, 1.4, 1.5, 1.6)."""

import pytest

from protos import cluster_pb2 as pb
from protos import jobs_pb2
from tests.lavactl.scripted import Desk


def _two_profiles(desk: Desk) -> None:
    reply = desk.client.applications_reply
    reply.applications.add(name="fluent", pend=4, run=8, ssusp=1, ususp=2, rsv=3, description="Fluent 26")
    reply.applications[0].parameters.add(name="RES_REQ", value="select[mem>100]")
    reply.applications[0].parameters.add(name="RUNLIMIT", value="60 120")
    reply.applications[0].default_limits["RUNLIMIT"] = "60.0 min"
    reply.applications[0].limits.update({"RUNLIMIT": "120.0 min", "MEMLIMIT": "2048000 K"})
    reply.applications.add(name="plain", is_default=True)


def test_profiles_are_listed_with_their_slots(desk: Desk) -> None:
    """lsf.md 1.5: APP_NAME NJOBS PEND RUN SUSP."""
    _two_profiles(desk)
    result = desk.type("bapp")
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "APP_NAME            NJOBS     PEND      RUN     SUSP\n"
        "fluent                 18        4        8        3\n"
        "plain                   0        0        0        0\n"
    )


def test_profiles_are_shown_with_their_settings(desk: Desk) -> None:
    """-l: limits with their units as those of queues, the others as they are written in lsb.applications."""
    _two_profiles(desk)
    text = desk.type("bapp", "-l").out
    assert text.startswith(
        "APPLICATION NAME: fluent\n"
        " -- Fluent 26\n"
        "\n"
        "STATISTICS:\n"
        "   NJOBS     PEND      RUN    SSUSP    USUSP      RSV\n"
        "      18        4        8        1        2        3\n"
        "\n"
        "DEFAULT LIMITS:\n"
        " RUNLIMIT\n"
        " 60.0 min\n"
        "\n"
        "MAXIMUM LIMITS:\n"
        " RUNLIMIT\n"
        " 120.0 min\n"
        " MEMLIMIT\n"
        " 2048000 K\n"
        "\n"
        "PARAMETERS:\n"
        "\n"
        "RES_REQ: select[mem>100]\n"
        "\n"
        "-----"
    )
    assert " -- No description provided.  This is the default application profile.\n" in text


@pytest.mark.parametrize(
    ("argv", "missing", "sentence"),
    [([], [], "No application profile found\n"), (["chem"], ["chem"], "chem: No such application profile\n")],
)
def test_bapp_without_profiles(desk: Desk, argv: list[str], missing: list[str], sentence: str) -> None:
    """One sentence and exit code 255."""
    desk.client.applications_reply = pb.ApplicationsReply(missing=missing)
    result = desk.type("bapp", *argv)
    assert (result.code, result.out, result.err) == (255, "", sentence)


def test_bsub_names_a_profile(desk: Desk) -> None:
    """lsf.md 1.2: -app, on the command line or in a script."""
    desk.type("bsub", "-app", "fluent", "sleep", "1")
    assert desk.client.asked[-1].spec.application == "fluent"


@pytest.mark.parametrize(("argv", "name"), [(["-app", "md"], "md"), (["-appn"], "")])
def test_bmod_gives_a_job_another_profile(desk: Desk, argv: list[str], name: str) -> None:
    """Only this field is changed."""
    desk.type("bmod", *argv, "5")
    request = desk.client.asked[-1]
    assert (list(request.fields), request.spec.application) == (["application"], name)


@pytest.mark.parametrize("command", ["bkill", "bstop", "bresume"])
def test_jobs_of_a_profile_are_controlled(desk: Desk, command: str) -> None:
    """lsf.md 1.4: -app chooses."""
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=9)])
    assert desk.type(command, "-app", "md", "0").code == 0
    assert desk.client.asked[-1].filter.application == "md"


def test_jobs_of_a_profile_are_listed_and_accounted(desk: Desk) -> None:
    """lsf.md 1.3 and 1.6; a profile without jobs is no failure of bjobs."""
    result = desk.type("bjobs", "-app", "md")
    assert (result.code, result.out, result.err) == (0, "", "No unfinished job found\n")
    assert desk.client.asked[-1].filter.application == "md"
    desk.type("bhist", "-app", "md")
    assert desk.client.asked[-1].filter.application == "md"
    assert "  - accounted on application profile md.\n" in desk.type("bacct", "-app", "md").out
    assert desk.client.asked[-1].application == "md"


def test_service_classes_are_named_and_choose_jobs(desk: Desk) -> None:
    """lsf.md 1.2 to 1.6: -sla of bsub, bmod, the commands that control jobs, and the lists."""
    desk.type("bsub", "-sla", "gold", "sleep", "1")
    assert desk.client.asked[-1].spec.service_class == "gold"
    for argv, name in ((("-sla", "tin"), "tin"), (("-slan",), "")):
        desk.type("bmod", *argv, "5")
        request = desk.client.asked[-1]
        assert (list(request.fields), request.spec.service_class) == (["service_class"], name)
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=9)])
    for command in ("bkill", "bstop", "bresume"):
        assert desk.type(command, "-sla", "gold", "0").code == 0
        assert desk.client.asked[-1].filter.service_class == "gold"
    assert desk.type("bjobs", "-sla", "gold").err == "No unfinished job found\n"
    assert desk.client.asked[-1].filter.service_class == "gold"
    assert "  - accounted on service classes gold,\n" in desk.type("bacct", "-sla", "gold").out
    assert desk.client.asked[-1].service_class == "gold"
