"""lsb.applications (lsf.md 6.4): what is read, what is named as without effect, what is wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.queues import AroundJob, JobDefaults
from lavad.core.queries.pending_reasons import explain
from tests.builders import Story, a_host, a_job
from tests.config.files import loaded, said


def test_a_profile_is_read_as_a_queue_is(tmp_path: Path) -> None:
    """Units and forms are those of lsb.queues; the default has to exist."""
    found = loaded(tmp_path, {
        "lsb.params": "Begin Parameters\nDEFAULT_APPLICATION = md\nEnd Parameters\n",
        "lsb.applications": """\
            Begin Application
            NAME = md
            DESCRIPTION = molecular dynamics
            RUNLIMIT = 10 2:00
            MEMLIMIT = 1024
            TASKLIMIT = 2 4 8
            RES_REQ = "rusage[mem=100]"
            JOB_STARTER = /opt/md/start
            RERUNNABLE = N
            NICE = 3
            SUSPEND_CONTROL = SIGTSTP
            TERMINATE_CONTROL = /opt/md/stop -now
            ENV_VARS = "MD_HOME='/opt/md', MD_MODE=fast"
            REQUEUE_EXIT_VALUES = 99
            PRE_EXEC = /opt/md/fetch
            POST_EXEC = /opt/md/tidy
            HOST_PRE_EXEC = /opt/md/mount
            HOST_POST_EXEC = /opt/md/unmount
            JOB_POSTPROC_TIMEOUT = 2
            LOCAL_MAX_PREEXEC_RETRY = 3
            End Application
            """,
    })  # fmt: skip
    assert said(found) == []
    profile = found.policy.applications["md"]
    assert found.policy.default_application == "md"
    assert profile == Application(
        "md", "molecular dynamics", run_limit_s=7200, rerunnable=False, nice=3, written=profile.written,
        job_controls=(("SUSPEND", "SIGTSTP"), ("TERMINATE", "/opt/md/stop -now")),
        environment=(("MD_HOME", "/opt/md"), ("MD_MODE", "fast")),
        around=AroundJob(
            job_pre="/opt/md/fetch", job_post="/opt/md/tidy", post_limit_s=120.0, tries_max=3,
            host_pre="/opt/md/mount", host_post="/opt/md/unmount",
        ),
        defaults=JobDefaults(
            requirement=profile.defaults.requirement, run_limit_default_s=600, memory_limit_mib=1,
            tasks_min=2, tasks_default=4, tasks_max=8, job_starter="/opt/md/start",
            requeue_exit_values="99",
        ),
    )  # fmt: skip
    assert "rusage[mem=100]" in profile.defaults.requirement


def test_what_a_profile_says_in_vain_is_named(tmp_path: Path) -> None:
    """As for queues: a warning for what a site may count on, an error for what is wrong."""
    found = loaded(tmp_path, {
        "lsb.params": "Begin Parameters\nDEFAULT_APPLICATION = none\nEnd Parameters\n",
        "lsb.applications": """\
            Begin Application
            NAME = a
            CONTAINER = docker[image(x)]
            SUCCESS_EXIT_VALUES = all
            RUNLIMITS = 5
            RUNLIMIT = soon
            ENV_VARS = LSB_QUEUE=x
            CHKPNT_PERIOD = 5
            End Application
            Begin Application
            NAME = a
            End Application
            Begin Application
            DESCRIPTION = without a name
            End Application
            """,
    })  # fmt: skip
    lines = [line.partition(": ")[0] + ": " + line.partition(": ")[2].split(":")[0] for line in said(found)]
    assert lines == [
        "lsb.applications:3: CONTAINER",
        "lsb.applications:4: SUCCESS_EXIT_VALUES = all",
        "lsb.applications:5: RUNLIMITS",
        "lsb.applications:6: RUNLIMIT = soon",
        "lsb.applications:7: ENV_VARS = LSB_QUEUE=x",
        "lsb.applications:8: CHKPNT_PERIOD",
        "lsb.applications:11: NAME = a",
        "lsb.applications:13: Application",
        "lsb.params:2: DEFAULT_APPLICATION = none",
    ]
    assert [one.is_fatal for one in found.complaints] == [False, True, False, True, True, False, *[True] * 3]


def test_no_job_runs_outside_of_its_container(tmp_path: Path) -> None:
    """L11: CONTAINER was named as without effect, and jobs ran outside; they are refused, and waiting ones wait."""
    container = "CONTAINER = docker[image(repository.example/tool:1) options(--rm)]"
    found = loaded(tmp_path, {
        "lsb.queues": f"Begin Queue\nQUEUE_NAME = boxed\n{container}\nEnd Queue\n"
                      "Begin Queue\nQUEUE_NAME = plain\nEnd Queue\n",
        "lsb.applications": f"Begin Application\nNAME = tool\n{container}\nEnd Application\n",
    })  # fmt: skip
    assert [one.partition(": lava runs")[0] for one in said(found)] == [
        "lsb.applications:3: CONTAINER",
        "lsb.queues:3: CONTAINER",
    ]
    story = Story(a_host("n1", 2))
    waiting = story.submit(a_job(queue="normal"))
    boxed, plain, _ = found.policy.queues
    story.do(c.Reconfigure(replace(found.policy, queues=(replace(boxed, name="normal"), boxed, plain))))
    story.plan()
    assert story.state(waiting) is JobState.PEND
    assert [reason.text for reason in explain(story.cluster, story.cluster.jobs[waiting], 0, story.now)] == [
        "The queue's jobs run in a container, in which lava cannot keep the job"
    ]
    for queue, application, where in (("boxed", "", "queue boxed"), ("plain", "tool", "application profile tool")):
        with pytest.raises(Refused, match=f"Jobs of {where} run in a container"):
            story.submit(a_job(queue=queue, application=application))
    story.submit(a_job(queue="plain"))
