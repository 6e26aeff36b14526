"""Conventions of Kubernetes' job kinds, under the names that importers give them."""

from tests.agents.told.jobs import DIRECTORY, PS_AND_WORKERS, at, job, role, text, told, variables

HOSTS = (at("n1", "10.0.0.1", r0="0", r1="0,1"), at("n2", "10.0.0.2", r1="2,3"))


def test_a_jobset_numbers_its_jobs_and_their_pods() -> None:
    """Two pods a job: the fourth task is pod 1 of job 1."""
    roles = (role("driver"), role("workers"))
    result = told(job(roles, "jobset workers.pods=2", name="js"), HOSTS, role=1, index=3)
    assert variables(result, "JOB_") == {"JOB_INDEX": "1", "JOB_COMPLETION_INDEX": "1"}
    assert [names[2] for _, names in result.names] == [
        "js-driver-0-0.js",
        "js-workers-0-0.js",
        "js-workers-0-1.js",
        "js-workers-1-0.js",
        "js-workers-1-1.js",
    ]
    assert not told(job(roles, "jobset network=no", name="js"), HOSTS, role=1, index=3).names


def test_a_leader_worker_set_counts_the_leader_as_the_first() -> None:
    """Its name is that of the group, the workers' have their numbers; the set's name is that of the service."""
    roles = (role("leader"), role("worker"))
    blob = job(roles, "leaderworkerset size=3 group=2", name="llm")
    hosts = HOSTS[:1]
    assert variables(told(blob, hosts, role=0, index=0), "LWS_") == {
        "LWS_LEADER_ADDRESS": "llm-2.llm.default",
        "LWS_GROUP_SIZE": "3",
        "LWS_WORKER_INDEX": "0",
    }
    worker = told(blob, hosts, role=1, index=1)
    assert worker.environment["LWS_WORKER_INDEX"] == "2"
    assert [names[1:] for _, names in worker.names] == [
        ("llm-2", "llm-2.llm", "llm-2.llm.default"),
        ("llm-2-1", "llm-2-1.llm", "llm-2-1.llm.default"),
        ("llm-2-2", "llm-2-2.llm", "llm-2-2.llm.default"),
    ]


def test_groups_of_a_leader_worker_set_with_services_of_their_own() -> None:
    """The subdomain policy UniquePerReplica names each after its leader."""
    blob = job((role("leader"),), "leaderworkerset size=1 group=1 subdomain=llm-1", name="llm")
    result = told(blob, [at("n1", "10.0.0.1", r0="0")], role=0, index=0)
    assert result.environment["LWS_LEADER_ADDRESS"] == "llm-1.llm-1.default"
    assert told(blob, [at("n1", "10.0.0.1", r0="0")], role=0, index=0, is_private=False).environment[
        "LWS_LEADER_ADDRESS"
    ] == ("10.0.0.1")


def test_an_indexed_job() -> None:
    """Index and name."""
    result = told(job([role("job")], "indexed", name="pi"), [at("n1", "10.0.0.1", r0="0,1")], role=0, index=1)
    assert variables(result, "JOB_") == {"JOB_COMPLETION_INDEX": "1"}
    assert [names[1:] for _, names in result.names] == [("pi-0", "pi-0.pi"), ("pi-1", "pi-1.pi")]


def test_the_rank_of_ascend() -> None:
    """Masters, then workers."""
    roles = (role("master"), role("worker"))
    assert told(job(roles, "hcclrank"), PS_AND_WORKERS, role=1, index=1).environment["HCCL_RANK_INDEX"] == "2"


def test_a_rayjob_has_its_head_in_every_task() -> None:
    """The submitter's dashboard, too; worker groups have names of their own."""
    roles = (role("head"), role("small-group"), role("submitter"))
    hosts = [at("n1", "10.0.0.1", r0="0", r1="0"), at("n2", "10.0.0.2", r2="0")]
    result = told(job(roles, "rayjob port=6400 dashboard-port=8300", name="rj"), hosts, role=2, index=0)
    assert variables(result, "RAY_", "FQ_") == {
        "RAY_ADDRESS": "rj-head-0.rj:6400",
        "RAY_PORT": "6400",
        "RAY_IP": "rj-head-0.rj",
        "FQ_RAY_IP": "rj-head-0.rj",
        "RAY_DASHBOARD_ADDRESS": "rj-head-0.rj:8300",
        "RAY_API_SERVER_ADDRESS": "http://rj-head-0.rj:8300",
        "RAY_CLUSTER_NAME": "rj",
        "RAY_CLUSTER_NAMESPACE": "default",
        "RAY_CLOUD_INSTANCE_ID": "rj-submitter-0",
        "RAY_NODE_TYPE_NAME": "submitter",
    }
    head = told(job(roles, "rayjob", name="rj"), hosts, role=0, index=0)
    assert head.environment["RAY_NODE_TYPE_NAME"] == "headgroup"


def test_ssh_of_an_openpai_job_reaches_roles_by_their_index() -> None:
    """Without the option there is no such program."""
    result = told(job([role("ps"), role("worker")], "pai jobssh=yes"), PS_AND_WORKERS, role=0, index=0)
    assert b"worker-1 n2 worker/1\n" in result.own["ssh_hosts"].content
    assert result.path_prefix == f"{DIRECTORY}/bin"
    assert not told(job([role("ps"), role("worker")], "pai"), PS_AND_WORKERS, role=0, index=0).path_prefix


def test_a_v1alpha1_mpijob_is_like_v1() -> None:
    """Slots in the discovery."""
    roles = (role("launcher"), role("worker"))
    result = told(job(roles, "mpijob version=v1alpha1 slots-per-worker=8", name="m"), PS_AND_WORKERS, role=0, index=0)
    assert text(result, "/etc/mpi/discover_hosts.sh") == "#!/bin/sh\necho m-worker-0:8\necho m-worker-1:8\n"
