"""Jobs with images on a cluster whose hosts run containers."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.containers.images import Image, Kind, _name
from tests.acceptance.conftest import _ended_in_order, open_directory
from tests.acceptance.personal import a_cluster
from tests.containers.roots import make_root
from tests.personal.conftest import account, other_account, public_commands
from tests.personal.people import is_open
from tests.seeds.site import Site

__all__ = ["_ended_in_order", "account", "open_directory", "other_account", "public_commands"]

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed"),
]

# This machine's control groups and limits are not what podman expects: its own configuration says so.
PODMAN = {"LAVA_PODMAN_OPTIONS": "--ulimit=nofile=1024:4096 --ulimit=nproc=1024:4096"}


@pytest.fixture(scope="module")
def cluster_site(open_directory: Path, public_commands: Path) -> Iterator[Site]:
    """A cluster of two hosts with bubblewrap and podman, and directories with two images."""
    settings = {"LAVA_TERMINATE_INTERVAL": "1", "LAVA_CONTAINERS": "bubblewrap podman", "LAVA_IMAGE_SPACE": "1"}
    images = open_directory / "images"
    settings["LAVA_IMAGE_DIR"] = str(images)
    images.mkdir()
    images.chmod(0o1777)
    make_root(open_directory / "first")
    make_root(open_directory / "second")
    (open_directory / "second" / "etc" / "release").write_text("another image\n")
    with a_cluster(open_directory / "C", 2, 2, commands=public_commands, **settings, **PODMAN) as made:
        yield Site(made, open_directory)


@pytest.fixture
def site(cluster_site: Site, tmp_path: Path) -> Iterator[Site]:
    """The cluster, empty; after the test its jobs are ended."""
    yield cluster_site.in_folder(tmp_path)
    cluster_site.cluster.clear()


def test_row_32_each_team_has_its_own_versions(site: Site, open_directory: Path) -> None:
    """Two jobs with different images on the cluster at once print different versions."""
    file = """
        name: {0}
        roles:
          main: {{tasks: 1, image: {1}, command: "cat /etc/release; while [ ! -e {2}/go ]; do sleep 0.05; done"}}
        """
    jobs = [site.run(file.format(name, open_directory / name, site.folder)) for name in ("first", "second")]
    for job in jobs:
        site.runs(job)
    (site.folder / "go").touch()
    for job, text in zip(jobs, ("an image\n", "another image\n"), strict=True):
        site.ends(job)
        assert site.log(job, "main/0") == text


def test_a_volcano_job_runs_in_its_image(site: Site, open_directory: Path) -> None:
    """Its tasks find the lists of hosts at their paths, and its end code is the program's."""
    job = site.run(f"""
        apiVersion: batch.volcano.sh/v1alpha1
        kind: Job
        metadata: {{name: pair}}
        spec:
          minAvailable: 2
          plugins: {{svc: [], env: []}}
          tasks:
          - replicas: 2
            name: worker
            template:
              spec:
                restartPolicy: Never
                containers:
                - name: main
                  image: {open_directory}/first
                  command: [/bin/sh, -c, "cat /etc/release /etc/volcano/worker.host; exit $VC_TASK_INDEX"]
        """)
    site.ends(job, "EXIT")
    hosts = ["pair-worker-0.pair", "pair-worker-1.pair"]
    assert [site.log(job, f"worker/{at}").split() for at in (0, 1)] == [["an", "image", *hosts]] * 2
    assert {name: row["EXIT"] for name, row in site.tasks(job).items()}["worker/1"] == "1"


def test_a_wrong_image_is_told(site: Site) -> None:
    """The task ends with 125, and its output says why."""
    job = site.run("name: wrong\nroles:\n  main: {tasks: 1, image: /nowhere/image, command: true}\n")
    site.ends(job, "EXIT")
    assert site.cluster.states(job)[0] == ("EXIT", 125)
    assert site.log(job, "main/0") == "lava: The image /nowhere/image cannot be used: No such file or directory.\n"


def test_nothing_is_left_of_a_killed_job(site: Site, open_directory: Path) -> None:
    """The program, what it forked and the runtime end with the job; a user's job is the user's in the container."""
    (site.folder / "out").mkdir(mode=0o777)
    (site.folder / "out").chmod(0o777)
    text = f"""
        name: killed
        roles:
          main:
            tasks: 1
            image: {open_directory}/first
            directory: {site.folder}/out
            command: |
              trap '' TERM
              sleep 1234 & echo $! > pids
              id -u > uid
              echo $$ >> pids
              sleep 1234
        """
    job = site.run(text)
    pids = site.folder / "out" / "pids"
    site.wait(lambda: pids.exists() and len(pids.read_text().split()) == 2, "the program's start")
    assert (site.folder / "out" / "uid").read_text() == f"{os.getuid()}\n"
    assert site.cluster.run("bkill", str(job)).returncode == 0
    site.ends(job, "EXIT")
    assert not [pid for pid in pids.read_text().split() if Path(f"/proc/{pid}").exists()]


@pytest.mark.skipif(not is_open(Path(sys.executable)), reason="no other user may run this checkout's commands")
def test_an_image_of_another_user_is_never_run(
    site: Site, open_directory: Path, account: str, other_account: str
) -> None:
    """A directory that another user has made in advance for the job's user is not used, and the task's output says so.

    Nothing that is put there under the image's name is executed; without it the user's own import is, which others can
    neither exchange nor write to.
    """
    images, victim, attacker = open_directory / "images", pwd.getpwnam(account), pwd.getpwnam(other_account)
    folder = open_directory / "own"
    folder.mkdir()
    archive = folder / "root.tar"
    subprocess.run(["tar", "-C", open_directory / "first", "--mode=a+rwX", "-cf", archive, "."], check=True)
    planted = images / f"user-{victim.pw_uid}"
    plant(open_directory / "second", planted, [archive], attacker.pw_uid)
    own = Site(site.cluster.as_seen_by(account), folder)
    file = f"""
        name: own
        roles:
          main: {{tasks: 1, image: {archive}, command: "cat /etc/release"}}
        """
    job = own.run(file)
    own.ends(job, "EXIT")
    said = own.log(job, "main/0")
    assert said == (
        f"lava: The directory of images {planted} is not used: it belongs to the user {other_account}; "
        "an administrator may remove it.\n"
    )
    shutil.rmtree(planted)
    job = own.run(file)
    own.ends(job)
    assert own.log(job, "main/0").splitlines()[-1] == "an image"
    attack = f"find {planted} -writable ! -type l; mv {planted} {images}/mine"
    tried = subprocess.run(
        ["runuser", "-u", other_account, "--", "sh", "-c", attack], capture_output=True, text=True, check=False
    )
    assert tried.stdout == ""
    assert tried.returncode != 0


def plant(root: Path, directory: Path, archives: list[Path], uid: int) -> None:
    """Put a root directory under the names that imports of these archives have, all of it another user's."""
    for archive in archives:
        name = _name(Image(Kind.ARCHIVE, str(archive))) + ".root"
        shutil.copytree(root, directory / name, symlinks=True)
    for path in (directory, *directory.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)


@pytest.mark.skipif(not (shutil.which("podman") and shutil.which("runc")), reason="podman or runc is not installed")
def test_an_image_of_podman(site: Site, open_directory: Path) -> None:
    """An image that podman knows by its name; nothing of the container is left."""
    name = f"localhost/lava-test-{os.getpid()}:1"
    configuration = site.folder / "containers.conf"
    configuration.write_text('[engine]\nruntime = "runc"\n')
    archive = site.folder / "root.tar"
    subprocess.run(["tar", "-C", open_directory / "second", "-cf", archive, "."], check=True)
    subprocess.run(["podman", "import", "-q", archive, name], check=True, capture_output=True)
    try:
        file = f"""
            name: by-podman
            environment: {{CONTAINERS_CONF: {configuration}}}
            roles:
              main: {{tasks: 1, image: "{name}", command: "cat /etc/release; exit 4"}}
            """
        job = site.run(file)
        site.ends(job, "EXIT")
        assert site.log(job, "main/0") == "another image\n"
        assert site.cluster.states(job)[0] == ("EXIT", 4)
        left = subprocess.run(
            ["podman", "ps", "-aq", "--filter", f"name=lava-{job}"], capture_output=True, text=True, check=True
        )
        assert left.stdout == ""
    finally:
        subprocess.run(["podman", "rmi", "-f", name], capture_output=True, check=False)
