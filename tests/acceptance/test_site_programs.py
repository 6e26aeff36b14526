"""Programs and settings of a site around submissions, with real daemons: esub and epsub, packs, spooled files, mail."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lavactl.settings import copy_beside
from tests.acceptance.conftest import _ended_in_order, open_directory
from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.personal.conftest import account, public_commands

__all__ = ["_ended_in_order", "account", "open_directory", "public_commands"]

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

ESUB = """\
. "$LSB_SUB_PARM_FILE"
[ "$LSB_SUB_PROJECT_NAME" = forbidden ] && exit $LSB_SUB_ABORT_VALUE
echo 'LSB_SUB_JOB_NAME="by the site"' > "$LSB_SUB_MODIFY_FILE"
echo "SITE=$(id -un)" > "$LSB_SUB_MODIFY_ENVFILE"
echo "printed for $LSB_SUB_COMMAND_LINE"
"""
EEXEC = 'umask 0; echo "$(id -un) $LS_EXEC_T $LSB_JOBID: $(cat)" >> "{place}/eexec"'
# As sendmail: addresses behind -oi, the mail on standard input.
MAILER = '(echo "$(id -un): $*"; cat) > "{place}/.$$" && mv "{place}/.$$" "{place}/$$.$(date +%s%N).mail"'


class Site:
    """A cluster with programs of its own."""

    def __init__(self, cluster: Cluster, place: Path) -> None:
        self.cluster = cluster
        self.place = place

    def mails(self) -> list[str]:
        """Mails sent so far, the oldest first."""
        found = sorted(self.place.glob("mail/*.mail"), key=lambda path: path.stat().st_mtime_ns)
        return [path.read_text() for path in found]

    def mail_about(self, *words: str) -> str:
        """The mail that has all of these words, as soon as it is there."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = [mail for mail in self.mails() if all(word in mail for word in words)]
            return bool(found)

        wait_for(is_there, 60, f"a mail with {words}")
        assert len(found) == 1, found
        return found[0]


def install(path: Path, text: str) -> None:
    """Write a program that all may run."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def site(open_directory: Path, public_commands: Path) -> Iterator[Site]:
    """One host; mails are files."""
    place = open_directory / "site"
    (place / "etc").mkdir(parents=True)
    (place / "mail").mkdir(mode=0o1777)
    (place / "mail").chmod(0o1777)
    install(place / "etc" / "esub", ESUB)
    install(place / "etc" / "epsub", f'umask 0; echo "$LSB_SUB_JOB_ID $LSB_SUB_JOB_QUEUE" >> {place}/mail/epsub')
    install(place / "etc" / "eexec", EEXEC.format(place=place / "mail"))
    install(place / "mailer", MAILER.format(place=place / "mail"))
    conf = f"LSF_SERVERDIR={place}/etc\nLSB_MAILPROG={place}/mailer\nLSB_MAILTO=!U@!H.example\nLSB_MAX_PACK_JOBS=2\n"
    with a_cluster(open_directory / "S", 1, 4, commands=public_commands) as cluster:
        with (cluster.directory / "lsf.conf").open("a") as file:
            file.write(conf)
        cluster.reconfigure()
        copy = Path(copy_beside(cluster.environment["LAVA_SOCKET"]))
        wait_for(lambda: "LSB_MAILPROG" in copy.read_text(), 60, "the agent of this host to have the settings")
        yield Site(cluster, place)


def test_rules_of_the_site(site: Site, account: str) -> None:
    """An esub names jobs, gives them a variable and refuses some, with the rights of who submits; epsub hears of it."""
    user = site.cluster.as_seen_by(account)
    job = user.submit("-K", "-o", f"{site.place}/mail/out.{account}", "echo $SITE as $LSB_JOBNAME")
    assert f"{account} as by the site\n" in Path(f"{site.place}/mail/out.{account}").read_text()
    queue = user.says("bjobs", "-noheader", "-o", "queue", str(job))
    assert f"{job} {queue}\n" in (site.place / "mail" / "epsub").read_text()
    refused = user.run("bsub", "-P", "forbidden", "true")
    assert (refused.returncode, refused.stderr) == (255, "Request aborted by esub. Job not submitted.\n")


def test_a_program_beside_the_job(site: Site, account: str) -> None:
    """eexec runs before and after it as its user, with what esub printed."""
    job = site.cluster.as_seen_by(account).submit("-K", "-o", "/dev/null", "true")
    file = site.place / "mail" / "eexec"
    lines = [f"{account} {phase} {job}: printed for true" for phase in ("START", "END")]
    wait_for(lambda: f" END {job}:" in file.read_text(), 60, "eexec to have run twice")
    assert [line for line in file.read_text().splitlines() if f" {job}:" in line] == lines


def test_a_pack(site: Site, tmp_path: Path) -> None:
    """Jobs in several requests, a dependency on one before it, and the counts."""
    out = tmp_path / "out"
    (tmp_path / "jobs").write_text(
        f"# three\n-o {out} echo one\n-o {out} -K true\n-o /dev/null sh -c 'exit 3'\n-o /dev/null true\n"
    )
    done = site.cluster.at(tmp_path).run("bsub", "-pack", "jobs")
    assert done.stdout.splitlines()[-1] == "2 lines parsed, 1 jobs submitted, 1 errors found."
    assert done.stderr == "Line#3 -K cannot be used in a pack. Job not submitted.\n"
    going_on = site.cluster.at(tmp_path).with_environment(LSB_PACK_SKIP_ERROR="Y")
    done = going_on.run("bsub", "-pack", "jobs")
    assert done.stdout.splitlines()[-1] == "4 lines parsed, 3 jobs submitted, 1 errors found."
    last = int(done.stdout.split("Job <")[-1].split(">")[0])
    assert [line.partition(" Job")[0] for line in done.stdout.splitlines()[:-1]] == ["Line#2", "Line#4", "Line#5"]
    wait_for(lambda: out.exists() and out.read_text().count("one\n") >= 2, 60, "both to have run")
    site.cluster.becomes(last - 1, "EXIT")


def test_files_as_they_were_at_submission(site: Site, account: str) -> None:
    """-is and -Zs of a job that starts after its files have changed; the copies are its user's alone."""
    user = site.cluster.as_seen_by(account)
    place = site.place / "mail"
    data, script, out = place / "data", place / "script", place / "spooled"
    data.write_text("before\n")
    install(script, 'cat; echo "script $*"; stat -c "%U %a" "$0"')
    job = user.submit("-H", "-is", str(data), "-Zs", "-o", str(out), str(script), "two words", "$x")
    data.write_text("after\n")
    script.unlink()
    user.run("bresume", str(job))
    site.cluster.becomes(job, "DONE")
    assert out.read_text().startswith(f"before\nscript two words $x\n{account} 500\n")
    assert f"Input File <{data}>" in user.run("bjobs", "-l", str(job)).stdout.replace("\n" + " " * 21, "")


def test_report_and_output_by_mail(site: Site, account: str) -> None:
    """Without -o both go by mail, as the job's user; with -o and -N the report alone, and the file has none."""
    user = site.cluster.as_seen_by(account)
    host = site.cluster.hosts()[0]
    plain = user.submit("-K", "echo the output; exit 3")
    mail = site.mail_about(f"Subject: Job {plain}:")
    head, _, body = mail.partition("\n\n")
    assert head.startswith(f"{account}: -oi -- {account}@")
    assert f"\nTo: {account}@" in head
    assert head.endswith("Exited")
    assert body.startswith("Job <by the site> was submitted from host <")
    assert f"Job was executed on host(s) <{host}>" in body
    assert "Exited with exit code 3.\n" in body
    assert mail.endswith("The output (if any) follows:\n\nthe output\n")

    out = site.place / "mail" / f"apart.{account}"
    apart = user.submit("-K", "-N", "-B", "-u", "boss@example.org", "-o", str(out), "echo in the file")
    begin = site.mail_about(f"Subject: Job {apart}:", "started")
    assert begin.startswith(f"{account}: -oi -- boss@example.org\n")
    end = site.mail_about(f"Subject: Job {apart}:", "Done")
    assert "Successfully completed." in end
    assert end.endswith(f"Read file <{out}> for stdout output of this job.\n")
    assert out.read_text() == "in the file\n"

    silent = user.submit("-K", "-Ne", "-o", "/dev/null", "true")
    failed = user.submit("-K", "-Ne", "-o", "/dev/null", "false")
    site.mail_about(f"Subject: Job {failed}:", "Exited")
    assert not [mail for mail in site.mails() if f"Job {silent}:" in mail]
