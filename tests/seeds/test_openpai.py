"""Seed rows 42 to 50: job files of OpenPAI's first and second protocol."""

import functools
import http.server
import json
import re
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

from lavactl.personal.state_file import load
from tests.seeds.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]


def role(name: str, number: int, command: str, **more: object) -> dict[str, object]:
    """A task role of the first protocol."""
    return {
        "name": name,
        "taskNumber": number,
        "cpuNumber": 1,
        "memoryMB": 64,
        "gpuNumber": 0,
        "command": command,
        **more,
    }


def first(name: str, *roles: dict[str, object], **more: object) -> str:
    """A job of the first protocol."""
    return json.dumps({"jobName": name, "image": "example/image", **more, "taskRoles": list(roles)}, indent=2)


def test_row_43_the_json_of_the_wild_is_read(site: Site) -> None:
    """Comments, line breaks within strings, and escapes that JSON does not know."""
    text = r"""{
  // a comment
  "jobName": "wild",
  "image": "example/image", /* another */
  "taskRoles": [
    { "name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64,
      "command": "echo first;
 echo \$PAI_TASK_ROLE_COUNT roles" }
  ]
}"""
    job = site.run(text, name="wild.json")
    site.ends(job)
    assert site.log(job, "main/0") == "first\n1 roles\n"


def test_row_43_an_error_has_its_line(site: Site) -> None:
    """Broken JSON, and a field with a wrong value, are refused with line and column."""
    assert "bad.json:" in site.refusal('{"jobName": "x",\n "taskRoles": [}', name="bad.json")
    wrong = site.refusal(first("x", role("main", -1, "true")), name="bad.json")
    assert "bad.json:" in wrong
    assert "taskNumber" in wrong


def test_row_44_the_name_is_unique_among_unfinished_jobs(site: Site) -> None:
    """A second job of the same name is refused while the first is there."""
    text = first("unique", role("main", 1, "sleep 600"))
    job = site.run(text, name="unique.json")
    assert "unique" in site.refusal(text, name="unique.json")
    site.cluster.run("bkill", str(job))
    site.ends(job, "EXIT")
    site.run(text, name="unique.json")


@pytest.fixture
def mnist(site: Site) -> Path:
    """Code as a user has it."""
    folder = site.folder / "from" / "mnist"
    folder.mkdir(parents=True)
    (folder / "mnist.py").write_text("print('trained')\n")
    return folder


RUNS = "test -d $PAI_WORK_DIR/mnist && cd mnist && python3 mnist.py && pwd; touch made"


def copied(site: Site, source: str, name: str) -> str:
    """Output of a job of two tasks with this codeDir, without the directories of the tasks, which are gone."""
    job = site.run(first(name, role("main", 2, RUNS), codeDir=source), name=f"{name}.json")
    site.ends(job)
    said = [site.log(job, f"main/{index}").splitlines() for index in range(2)]
    places = {Path(lines[-1]) for lines in said}
    assert len(places) == 2
    site.wait(lambda: not any(place.exists() for place in places), "the working directories to be removed")
    return {lines[0] for lines in said}.pop()


def test_row_45_code_is_copied_to_each_task(site: Site, mnist: Path) -> None:
    """From a path, a file URL, a web server and a repository; the copies are removed after the job."""
    assert copied(site, f"file://{mnist}", "by-url") == "trained"
    text = first("by-path", role("main", 1, "ls mnist; echo at $PAI_CODE_DIR"), codeDir="$PAI_DEFAULT_FS_URI/mnist")
    environment = {"PAI_DEFAULT_FS_URI": str(mnist.parent)}
    done = site.cluster.with_environment(**site.cluster.environment, **environment).run(
        "lavactl", "run", "-f", str(site.file(text, "by-path.json"))
    )
    job = int(re.findall(r"Job <(\d+)>", done.stdout)[0])
    site.ends(job)
    assert site.log(job, "main/0") == "mnist.py\nat $PAI_DEFAULT_FS_URI/mnist\n"
    assert not (mnist / "made").exists()


def test_row_45_code_from_a_web_server_and_a_repository(site: Site, mnist: Path) -> None:
    """Over the network of the hosts, and by git."""
    with tarfile.open(mnist.parent / "mnist.tar.gz", "w:gz") as archive:
        archive.add(mnist, "mnist")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(mnist.parent))
    address = load(site.cluster.directory).master_address
    with http.server.ThreadingHTTPServer((address, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            where = f"http://{address}:{server.server_address[1]}"
            assert copied(site, f"{where}/mnist.tar.gz", "by-web") == "trained"
        finally:
            server.shutdown()
            thread.join()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(mnist)]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    assert copied(site, f"git+file://{mnist}", "by-git") == "trained"


def test_row_45_code_that_cannot_be_copied_fails_the_task(site: Site, mnist: Path) -> None:
    """With the reason in its output; the command is not run."""
    with (mnist / "big").open("wb") as file:
        file.truncate(201 << 20)
    for source, said in ((f"file://{mnist}", "larger than 200 MiB, the limit."), ("/nowhere/x", "No such file")):
        job = site.run(first("refused", role("main", 1, "echo run"), codeDir=source), name="refused.json")
        site.ends(job, "EXIT")
        log = site.log(job, "main/0")
        assert said in log
        assert "run" not in log.split()


def test_row_47_the_exit_code_decides(site: Site) -> None:
    """One failed task fails the job with its code; another number of failures can be allowed."""
    job = site.run(first("fails", role("main", 2, "exit $((PAI_TASK_INDEX * 3))")), name="fails.json")
    site.ends(job, "EXIT")
    assert site.cluster.states(job)[0] == ("EXIT", 3)
    text = first("may-fail", role("main", 2, "exit $((PAI_TASK_INDEX * 3))", minFailedTaskCount=2))
    job = site.run(text, name="may-fail.json")
    site.ends(job, "DONE")


def test_row_48_all_know_all_addresses(site: Site) -> None:
    """Servers and workers print the same lists ip:port,ip:port."""
    command = "echo ps $PAI_TASK_ROLE_ps_HOST_LIST workers $PAI_TASK_ROLE_worker_HOST_LIST; env"
    text = first("lists", role("ps", 2, command), role("worker", 2, command))
    job = site.run(text, name="lists.json")
    site.ends(job)
    said = [site.log(job, task).splitlines()[0] for task in ("ps/0", "ps/1", "worker/0", "worker/1")]
    assert len(set(said)) == 1
    words = said[0].split()
    assert [len(words[place].split(",")) for place in (1, 3)] == [2, 2]
    assert all(":" in address for place in (1, 3) for address in words[place].split(","))
    found = site.environment(job, "worker/1")
    for name in (
        "PAI_JOB_NAME", "PAI_USER_NAME", "PAI_WORK_DIR", "PAI_TASK_ROLE_COUNT", "PAI_TASK_ROLE_LIST",
        "PAI_TASK_ROLE_TASK_COUNT_worker", "PAI_HOST_IP_ps_0", "PAI_PORT_LIST_ps_0_http", "PAI_RESOURCE_ps",
        "PAI_CURRENT_TASK_ROLE_NAME", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_CURRENT_CONTAINER_IP",
        "PAI_CURRENT_CONTAINER_PORT", "PAI_TASKS_NUM", "PAI_TASK_ROLE_INSTANCES",
    ):  # fmt: skip
        assert name in found, name


def test_row_49_variables_are_expanded_in_the_command(site: Site) -> None:
    """By the task's own shell."""
    text = first("index", role("main", 3, "echo $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"))
    job = site.run(text, name="index.json")
    site.ends(job)
    assert [site.log(job, f"main/{index}") for index in range(3)] == ["0\n", "1\n", "2\n"]


SECOND = """
protocolVersion: 2
name: rendered
type: job
prerequisites:
  - protocolVersion: 2
    name: image
    type: dockerimage
    uri: example/image
  - protocolVersion: 2
    name: data
    type: data
    uri: [/data/first, /data/second]
parameters:
  steps: 3
  unknown: "<% $nowhere.x %>"
secrets:
  token: hidden-in-plain-sight
taskRoles:
  trainer:
    instances: 1
    dockerImage: image
    data: data
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands:
      - echo steps <% $parameters.steps %> from <% $data.uri[1] %>
      - test "$(printf %s "<% $secrets.token %>" | wc -c)" = 21 && echo knows it
defaults:
  virtualCluster: default
deployments:
  - name: local
    taskRoles:
      trainer:
        preCommands: [echo before]
"""


def test_row_50_the_second_protocol_is_rendered(site: Site) -> None:
    """Parameters, data and secrets; the secret is in no output of lava."""
    job = site.run(SECOND)
    site.ends(job)
    assert site.log(job, "trainer/0") == "steps 3 from /data/second\nknows it\n"
    shown = [
        site.cluster.says("lavactl", "show", str(job), "-o", "yaml"),
        site.cluster.says("bjobs", "-l", str(job)),
        site.cluster.says("bhist", "-l", str(job)),
    ]
    assert not [one for one in shown if "hidden-in-plain-sight" in one]


SECRETS = """\
protocolVersion: 2
name: of-openpai
type: job
prerequisites:
  - {protocolVersion: 2, name: image, type: dockerimage, uri: example/image}
secrets: {token: hunter2-of-openpai}
taskRoles:
  trainer:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands:
      - printf %s 'x <% $secrets.token %>' | wc -c
      - sleep 1000
---
apiVersion: v1
kind: Secret
metadata: {name: creds}
stringData: {PASSWORD: hunter2-of-kubernetes}
---
apiVersion: batch/v1
kind: Job
metadata: {name: of-kubernetes}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: c
        command: [sh, -c, 'printf %s "$URL" | wc -c; sleep 1000']
        envFrom: [{secretRef: {name: creds}}]
        env: [{name: URL, value: "db://$(PASSWORD)"}]
"""


def test_secrets_are_kept_from_all_but_the_tasks(site: Site, account: str) -> None:
    """No command shows them, to the owner or another user; no log and no command line of a process has them; files that
    do, the database and the hosts' records, are closed to other users.
    """
    done = site.cluster.run("lavactl", "run", "-f", str(site.file(SECRETS)))
    pai, kubernetes = re.findall(r"Job <(\d+)> is submitted", done.stdout)
    for job, task, said in ((int(pai), "trainer/0", "20\n"), (int(kubernetes), "job/0", "26\n")):
        site.runs(job, task)
        site.wait(lambda job=job, task=task, said=said: site.log(job, task) == said, f"job {job} to say {said}")
    look = [("lavactl", "show"), ("bjobs", "-l"), ("bhist", "-l"), ("lavactl", "tasks")]
    for cluster in (site.cluster, site.cluster.as_seen_by(account)):
        assert not [words for words in look if "hunter2" in str(cluster.run(*words, pai, kubernetes))]
        assert not [words for words in look if "hunter2" in str(cluster.run(*words, kubernetes))]
    assert "hunter2" not in said_by("ps", "-eo", "args")
    files = said_by("grep", "-rls", "hunter2-of", str(site.cluster.directory)).splitlines()
    assert any("/lava.db" in path for path in files)
    assert not [path for path in files if path.endswith(".log")]
    assert said_by("runuser", "-u", account, "--", "grep", "-ls", "hunter2-of", *files) == ""


def said_by(*words: str) -> str:
    """Output of a program."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def test_row_50_the_deployment_named_as_default_is_used(site: Site) -> None:
    """Its commands come before those of the role."""
    job = site.run(SECOND.replace("virtualCluster: default", "virtualCluster: default\n  deployment: local"))
    site.ends(job)
    assert site.log(job, "trainer/0").startswith("before\n")
