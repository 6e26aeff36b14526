"""Resource requirements with real processes: order, -m, same, site resources, elims, CPU binding."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

SHARED = """\
Begin Cluster
ClusterName
site
End Cluster
Begin Resource
RESOURCENAME  TYPE     INTERVAL  INCREASING  LAVA_INDEXED  DESCRIPTION
lic           Numeric  ()        N           N        (licences for all hosts together)
fpga          Numeric  ()        N           Y        (cards)
scratch       Numeric  10        N           N        (from an elim)
place         String   ()        ()          N        (where the host stands)
End Resource
"""
CLUSTER = """\
Begin Host
HOSTNAME  model  type  server  RESOURCES
{hosts}
End Host
Begin ResourceMap
RESOURCENAME  LOCATION
lic           (1@[all])
fpga          (2@[{first}])
scratch       [default]
place         (north@[{first}] south@[{second}])
End ResourceMap
"""
ELIM = """\
#!/bin/sh
while :; do
    echo "1 scratch $(cat {amount})"
    sleep 0.2
done
"""


@pytest.fixture(scope="module")
def site(open_directory: Path) -> Iterator[Cluster]:
    """Two hosts of four slots."""
    with a_cluster(open_directory / "R", 2, 4, LAVA_HEARTBEAT="0.5") as made:
        first, second = made.hosts()
        hosts = "\n".join(f"{name} ! ! 1 ()" for name in (first, second))
        files = {"lsf.shared": SHARED, "lsf.cluster.site": CLUSTER.format(hosts=hosts, first=first, second=second)}
        said = made.reconfigure(files)
        assert "Reconfiguration initiated" in said, said
        yield made


def _where(cluster: Cluster, job: int) -> str:
    return cluster.run("bjobs", "-noheader", "-o", "exec_host", str(job)).stdout.strip()


def _runs(cluster: Cluster, job: int) -> bool:
    return cluster.state(job) == "RUN"


def _said(cluster: Cluster, path: Path, *options: str) -> list[str]:
    """Output of a job with these options."""
    job = cluster.submit(*options, "-o", str(path), _TELL)
    wait_for(lambda: cluster.state(job) == "DONE", 60, "the job to be done")
    return [line.partition(":")[2] for line in path.read_text().splitlines() if line.startswith("told:")]


_TELL = (
    'echo told:$(grep Cpus_allowed_list /proc/self/status | cut -f2); echo "told:$LSB_BIND_CPU_LIST"; '
    'echo "told:$(cat $LSB_AFFINITY_HOSTFILE /dev/null)"; echo "told:$LAVA_DEVICES_FPGA"'
)


_POLICIES = "cut -d' ' -f2- /proc/self/numa_maps | cut -d' ' -f1 | sort -u"
_HAS_CPUSETS = Path("/sys/fs/cgroup/cpuset/cpuset.cpus").exists()


def _empty(cluster: Cluster) -> None:
    cluster.run("bkill", "0")
    wait_for(lambda: not cluster.run("bjobs", "-noheader").stdout, 60, "all jobs to end")


def test_order_spreads_and_packs_and_preference_goes_first(site: Cluster) -> None:
    """order[slots] takes the emptier host, order[-slots] the fuller one; -m h+1 goes before both."""
    first, second = site.hosts()
    a = site.submit("-m", f"{second}+1 {first}", "sleep 300")
    wait_for(lambda: _runs(site, a), 60, "the first job to run")
    assert _where(site, a) == second
    b = site.submit("-R", "order[slots]", "sleep 300")
    wait_for(lambda: _runs(site, b), 60, "the second job to run")
    assert _where(site, b) == first
    c = site.submit("-m", f"{second}", "sleep 300")
    d = site.submit("-R", "order[-slots]", "sleep 300")
    wait_for(lambda: _runs(site, c) and _runs(site, d), 60, "the others to run")
    assert _where(site, d) == second
    _empty(site)


def test_hosts_that_differ_are_not_the_same(site: Cluster) -> None:
    """The parallel job is pending with the reason; without same[] it starts. Unknown names are refused with their
    position.
    """
    waiting = site.submit("-n", "2", "-R", "span[ptile=1] same[place]", "sleep 300")
    started = site.submit("-n", "2", "-R", "span[ptile=1]", "sleep 300")
    wait_for(lambda: _runs(site, started), 60, "the gang on two hosts to run")
    assert "Not enough hosts that are the same" in site.run("bjobs", "-l", str(waiting)).stdout
    refused = site.run("bsub", "-R", "select[plaze==north]", "true")
    assert refused.returncode != 0
    assert "Bad resource name 'plaze' at character 8" in refused.stderr
    _empty(site)


def test_a_shared_licence_goes_from_job_to_job(site: Cluster) -> None:
    """One licence for both hosts: the second job is pending for it, and starts when the first has ended."""
    a = site.submit("-R", "rusage[lic=1]", "sleep 300")
    wait_for(lambda: _runs(site, a), 60, "the first job to run")
    b = site.submit("-R", "rusage[lic=1]", "sleep 300")
    _, row = site.run("bhosts", "-s", "lic").stdout.splitlines()
    assert row.split() == ["lic", "0.0", "1.0", *site.hosts()]
    assert site.run("lshosts", "-s").stdout.splitlines()[1].split() == ["lic", "1.0", *site.hosts()]
    assert re.search(r"lic .*\n Total .* 1\.0.*\n Reserved .* 1\.0", site.run("bhosts", "-l").stdout)
    assert "No dynamic shared resources defined" in site.run("lsload", "-s").stdout
    reason = "Job's requirements for reserving resource (lic) not satisfied"
    wait_for(lambda: reason in site.run("bjobs", "-l", str(b)).stdout, 60, "the reason to be told")
    site.run("bkill", str(a))
    wait_for(lambda: _runs(site, b), 60, "the second job to run")
    _empty(site)


def test_commands_select_hosts_by_requirements(site: Cluster) -> None:
    """-R knows what the site has defined; jobs are listed by the name of the cluster, too."""
    first, second = site.hosts()
    assert site.run("lsload", "-R", "place==south", "-I", "mem", "-w", "-noheader").stdout.split()[:2] == [second, "ok"]
    assert site.run("lshosts", "-R", "select[place==north]", "-o", "host_name", "-noheader").stdout == f"{first}\n"
    assert site.run("lsplace", "-R", "place==south").stdout == f"{second}\n"
    assert site.run("bhosts", "-R", "fpga>1", "-noheader").stdout.split()[0] == first
    refused = site.run("bhosts", "-R", "nosuch>1")
    assert refused.returncode == 255
    assert "Bad resource name 'nosuch'" in refused.stderr
    assert "lic           Numeric   Dec   licences for all hosts together\n" in site.run("lsinfo", "-r").stdout
    job = site.submit("-H", "sleep 300")
    cluster = site.run("lsid").stdout.partition("My cluster name is ")[2].split()[0]
    listed = site.run("bjobs", "-m", cluster, "-u", "all", "-o", "jobid", "-noheader").stdout
    assert listed == f"{job}\n"
    _empty(site)


def test_what_an_elim_reports_lets_a_job_start(site: Cluster) -> None:
    """The job is pending until the elim reports enough."""
    amount = site.directory / "scratch"
    amount.write_text("10")
    elims = site.directory / "elims"
    elims.mkdir()
    program = elims / "elim.scratch"
    program.write_text(ELIM.format(amount=amount))
    program.chmod(0o755)
    job = site.submit("-R", "select[scratch>50]", "sleep 300")
    assert not _runs(site, job)
    amount.write_text("60")
    wait_for(lambda: _runs(site, job), 60, "the job to start when the elim says so")
    lasts = re.compile(rf"scratch\n(.*\n)*{site.hosts()[0]} .* 60\.0\n")  # its elim may report after the other host's
    wait_for(lambda: lasts.search(site.run("lsload", "-l").stdout), 60, "the first host's value to be shown")
    _empty(site)


def test_tasks_are_bound_and_told_their_devices(site: Cluster) -> None:
    """The job's own mask matches its environment; two jobs with affinity on a host have different processors."""
    usable = len(os.sched_getaffinity(0))
    path = site.directory / "told"
    mask, told, listing, devices = _said(site, path, "-R", "affinity[thread(1)] rusage[fpga=2]")
    assert mask == told
    assert len(told.split(",")) == 1
    assert listing.split() == [site.hosts()[0], told]
    assert devices == "0,1"
    widened = site.directory / "widened"
    widen = f"{sys.executable} -c 'import os; os.sched_setaffinity(0, range(1024)); print(os.sched_getaffinity(0))'"
    job = site.submit("-R", "affinity[thread(1):membind=localonly]", "-o", str(widened), f"{widen}; {_POLICIES}")
    wait_for(lambda: site.states(job).get(0, ("", 0))[0] == "DONE", 60, "the job to be done")
    got = widened.read_text().splitlines()
    if _HAS_CPUSETS:
        assert got[0] in [str({cpu}) for cpu in range(usable)]
    assert got[1].startswith("bind:")
    bound = site.submit("-R", "affinity[thread(1)]", "sleep 300")
    wait_for(lambda: _runs(site, bound), 60, "the bound job to run")
    row = re.search(r"^ (\S+) +thread +- +- +(\d+) ", site.run("bjobs", "-l", "-aff", str(bound)).stdout, re.MULTILINE)
    assert row is not None
    assert f"*{row[2]}" in site.run("bhosts", "-aff", row[1]).stdout
    waiting = site.submit("-R", f"affinity[thread({usable + 1})]", "true")
    wanted = "Not enough free processors for the job's affinity requirement"
    wait_for(lambda: wanted in site.run("bjobs", "-l", str(waiting)).stdout, 60, "the reason to be told")
    _empty(site)


def test_a_job_keeps_its_compute_unit_for_itself(site: Cluster) -> None:
    """Other jobs start elsewhere or are pending with the reason until it ends."""
    first, second = site.hosts()
    units = f"Begin ComputeUnit\nNAME MEMBER TYPE\nr1 ({first}) rack\nr2 ({second}) rack\nEnd ComputeUnit\n"
    params = "Begin Parameters\nCOMPUTE_UNIT_TYPES = rack\nEnd Parameters\n"
    site.reconfigure({"lsb.params": params, "lsb.hosts": units})
    alone = site.submit("-R", "cu[excl]", "-m", first, "sleep 300")
    wait_for(lambda: _runs(site, alone), 60, "the job in its unit to run")
    assert re.search(rf"^{first} +closed_cu_excl", site.run("bhosts", "-w").stdout, re.MULTILINE)
    other = site.submit("sleep 300")
    wait_for(lambda: _runs(site, other), 60, "another job to run")
    assert _where(site, other) == second
    kept_out = site.submit("-m", first, "sleep 300")
    reason = "A job has the host's compute unit for itself"
    wait_for(lambda: reason in site.run("bjobs", "-l", str(kept_out)).stdout, 60, "the reason to be told")
    site.run("bkill", str(alone))
    wait_for(lambda: _runs(site, kept_out), 60, "the unit to be open again")
    _empty(site)
