"""Checkpoints of jobs by their application profile or queue (lsf.md 6.4: CHKPNT)."""

import pytest

from lavad.api.jobs.checkpoint_defaults import fill_in
from lavad.api.records.queue_records import queue_record
from lavad.core.cluster import Cluster
from lavad.core.model.checkpoints import CheckpointTerms
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from protos import jobs_pb2 as pb
from tests.builders import ANN

CLOSED = Names(False, frozenset({"bob"}))


@pytest.fixture
def cluster() -> Cluster:
    """A queue without checkpoints, two with, and two profiles."""
    queues = (
        Queue("normal"),
        Queue("long", checkpoints=CheckpointTerms("/queue", 600.0)),
        Queue("bobs", users=CLOSED, checkpoints=CheckpointTerms("saved")),
    )
    profiles = (Application("plain"), Application("md", checkpoints=CheckpointTerms("own", 60.0, 30.0, "dmtcp")))
    return Cluster(Policy(queues=queues, applications={one.name: one for one in profiles}))


def terms(cluster: Cluster, spec: pb.JobSpec, *queues: str, **says: str) -> tuple[str, float, float, str]:
    """Terms of the job in one of these queues, in an environment that ``says`` method or programs."""
    one = filled(cluster, spec, *queues, **says)
    return one.directory, one.period_s, one.first_s, one.method


def filled(cluster: Cluster, spec: pb.JobSpec, *queues: str, **says: str) -> pb.Checkpoint:
    item = pb.SubmitItem(spec=spec, **{f"checkpoint_{name}": value for name, value in says.items()})  # type: ignore[arg-type]
    fill_in(cluster, item, ANN, queues)
    spec.CopyFrom(item.spec)
    return spec.checkpoint


def a_spec(**fields: object) -> pb.JobSpec:
    return pb.JobSpec(command="a.out", cwd="/jobs", **fields)  # type: ignore[arg-type]


def test_a_job_without_its_own_has_those_of_its_profile_or_queue(cluster: Cluster) -> None:
    """The profile's come before the queue's; a relative directory begins at the job's."""
    spec = a_spec()
    assert terms(cluster, spec, "normal") == ("", 0, 0, "")
    assert not spec.HasField("checkpoint")
    assert terms(cluster, a_spec(application="plain"), "long") == ("/queue", 600, 0, "")
    assert terms(cluster, a_spec(application="md"), "long") == ("/jobs/own", 60, 30, "dmtcp")
    spec = a_spec(application="md")
    assert terms(cluster, spec, "long", method="mine", programs="/site") == ("/jobs/own", 60, 30, "mine")
    assert spec.checkpoint.programs == "/site"


@pytest.mark.parametrize(
    ("says", "name"),
    [({"method": "../mine"}, "LSB_ECHKPNT_METHOD"), ({"programs": "mine"}, "LSB_ECHKPNT_METHOD_DIR")],
)
def test_what_the_environment_names_is_checked(cluster: Cluster, says: dict[str, str], name: str) -> None:
    """As bsub does for -k; a job without checkpoints may have any."""
    with pytest.raises(Refused, match=f"{name}: expected"):
        terms(cluster, a_spec(), "long", **says)
    assert terms(cluster, a_spec(), "normal", **says)[0] == ""


def test_what_the_job_names_comes_first(cluster: Cluster) -> None:
    """The rest is the profile's, and nothing the queue's."""
    own = pb.Checkpoint(directory="/mine", period_s=120)
    assert terms(cluster, a_spec(application="md", checkpoint=own), "long") == ("/mine", 120, 30, "dmtcp")
    own = pb.Checkpoint(directory="/mine")
    assert terms(cluster, a_spec(checkpoint=own), "long") == ("/mine", 0, 0, "")


def test_a_period_of_none(cluster: Cluster) -> None:
    """With -k "dir 0" no checkpoint is made by itself, whatever the profile says, but for init= of the job's own."""
    own = pb.Checkpoint(directory="/mine", no_period=True)
    assert terms(cluster, a_spec(application="md", checkpoint=own), "long") == ("/mine", 0, 0, "dmtcp")
    own = pb.Checkpoint(directory="/mine", no_period=True, first_s=90)
    assert terms(cluster, a_spec(application="md", checkpoint=own), "long") == ("/mine", 0, 90, "dmtcp")


def test_a_number_alone(cluster: Cluster) -> None:
    """-k 240 is the period where the profile has a directory, which it goes with; else a directory of that name."""

    def number(name: str) -> pb.Checkpoint:
        return pb.Checkpoint(directory=f"/jobs/{name}", names_minutes=True)

    assert terms(cluster, a_spec(application="md", checkpoint=number("60")), "long") == ("/jobs/own", 3600, 30, "dmtcp")
    assert terms(cluster, a_spec(application="md", checkpoint=number("0")), "long") == ("/jobs/own", 0, 0, "dmtcp")
    assert terms(cluster, a_spec(checkpoint=number("240")), "long") == ("/jobs/240", 0, 0, "")
    assert terms(cluster, a_spec(application="md", checkpoint=number("x")), "long") == ("/jobs/x", 60, 30, "dmtcp")


def test_a_restarted_job_has_the_periods_of_the_earlier_one(cluster: Cluster) -> None:
    """Also where bchkpnt -p has switched the profile's off."""
    own = pb.Checkpoint(directory="/mine", method="own", restarts_from="7")
    assert terms(cluster, a_spec(application="md", checkpoint=own), "long") == ("/mine", 0, 0, "own")


def test_of_several_queues_it_is_the_one_that_accepts_the_job(cluster: Cluster) -> None:
    """Ann may not use the queue of bob."""
    assert terms(cluster, a_spec(), "bobs", "long") == ("/queue", 600, 0, "")
    assert terms(cluster, a_spec(), "bobs", "normal") == ("", 0, 0, "")


def test_jobs_that_are_not_started_again_have_none(cluster: Cluster) -> None:
    """Interactive ones, which bsub -k refuses, and those of tasks."""
    assert terms(cluster, a_spec(interactive="pipes"), "long")[0] == ""
    assert terms(cluster, a_spec(tasks=pb.TaskRules()), "long")[0] == ""


def test_bqueues_shows_them(cluster: Cluster) -> None:
    """In the words and the unit of its manual."""
    queue = cluster.policy.queue("long")
    assert queue is not None
    shown = queue_record(cluster, queue, 0.0).parameters
    assert (shown["CHKPNTDIR"], shown["CHKPNTPERIOD"]) == ("/queue", "600")
