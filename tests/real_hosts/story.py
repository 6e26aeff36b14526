"""docs/howto/real-hosts.md, followed word by word on three booted hosts: master, n001 and n002; then every command.

A module for each release of Debian takes these tests over; the units are those that are shipped. Two things of the page
are not as typed: "every host" is installed once and copied, and `ssh` and `scp` to a host are carried out by the test,
since the hosts have no keys for each other. Takes minutes: `make test-real-hosts`.
"""

import os
import shutil
import time
from collections.abc import Iterator

import pytest

from tests.real_hosts import containers, tour
from tests.real_hosts.containers import FOREIGN, USER, Host, Release
from tests.real_hosts.page import Block, blocks

PAGE = containers.REPOSITORY / "docs" / "howto" / "real-hosts.md"
NAMES = ("master", "n001", "n002")
NEEDED = ("debootstrap", "systemd-nspawn", "ip", "nsenter")
CHILDREN = ("lavad-lsf-logs", "lavad-reader", "lavad-writer")
LEAVING = "A host that leaves, and one that comes back"


pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("LAVA_REAL_HOSTS"), reason="boots three hosts: make test-real-hosts"),
    pytest.mark.skipif(any(shutil.which(one) is None for one in NEEDED), reason=f"needs {', '.join(NEEDED)}"),
]


class Site:
    """The hosts, and the output of the page's commands, by section."""

    def __init__(self, hosts: dict[str, Host]) -> None:
        self.hosts = hosts
        self.said: dict[str, list[str]] = {}

    def follow(self, block: Block) -> None:
        """Run the commands of a block on their host."""
        places = {"the master": ["master"], "each host": ["n001", "n002"]}.get(block.place, [block.place])
        for place in places:
            lines = block.text
            while lines:
                lines = self._some(self.hosts[place], block, lines)

    def _some(self, host: Host, block: Block, lines: str) -> str:
        """Type all up to the next line that goes to another host; the rest."""
        first, _, rest = lines.partition("\n")
        words = first.split()
        if words and words[0] == "ssh":
            self.hosts[words[1]].run(" ".join(words[2:]))
            return rest
        if words and words[0] == "scp":
            name, _, path = words[-1].partition(":")
            shutil.copy2(host.root / words[-2][1:], self.hosts[name].root / path[1:])
            os.chown(self.hosts[name].root / path[1:], 0, 0)
            return rest
        mine = [line for line in lines.splitlines(True)]
        end = next((at for at, line in enumerate(mine) if line.startswith(("ssh ", "scp "))), len(mine))
        done = host.run("".join(mine[:end]), block.user)
        self.said.setdefault(block.section, []).append(done.stdout + done.stderr)
        return "".join(mine[end:])


@pytest.fixture(scope="module")
def page() -> list[Block]:
    """All commands of the page."""
    return list(blocks(PAGE))


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, page: list[Block], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three hosts of the release on which every command before a host's removal has been typed."""
    release: Release = request.module.RELEASE
    place = tmp_path_factory.mktemp(release.name)
    everywhere = "".join(block.text for block in page if block.place == "every host")
    assert "pip install" in everywhere
    with (
        containers.image(place / "image", release, everywhere) as layer,
        containers.booted(place, release, layer, NAMES) as hosts,
    ):
        site = Site(hosts)
        for block in page:
            if block.place != "every host" and block.section != LEAVING:
                if block.section == "See that it works":
                    until_ok(site, "n001", "n002")
                site.follow(block)
        yield site


def until_ok(site: Site, *names: str) -> None:
    """Wait for the state that the page announces after some seconds."""
    end = time.monotonic() + 60
    while True:
        rows = [line.split() for line in site.hosts["master"].run("bhosts -w", check=False).stdout.splitlines()[1:]]
        if sorted(row[0] for row in rows if row[1] == "ok") == sorted(names):
            return
        assert time.monotonic() < end, rows
        time.sleep(0.5)


def journal_of_errors(host: Host, *more: str) -> list[str]:
    """Lines of lava's units that no sound run has."""
    lines = host.run(f"journalctl -o cat --no-pager -u lavad -u lava-agent {' '.join(more)}").stdout.splitlines()
    grave = host.run(f"journalctl -o cat --no-pager -p err -u lavad -u lava-agent {' '.join(more)}").stdout.splitlines()
    return list(dict.fromkeys([*grave, *(line for line in lines if "level=ERROR" in line or "Traceback" in line)]))


def test_the_page_brings_up_a_cluster_that_runs_jobs(site: Site) -> None:
    """lsid on the master; bhosts and badmin there; jobs of an ordinary user from a host, one of them on both."""
    assert "mycluster" in "".join(site.said["The master"])
    master, user = site.said["See that it works"]
    assert master.count(" ok ") >= 2
    assert "Close <n002> ...... done" in master
    assert "Open <n002> ...... done" in master
    assert "n001\n" in user or "n002\n" in user
    assert {"n001", "n002"} <= set(user.split())


def test_the_programs_of_others_are_left_alone(site: Site) -> None:
    """Debian's package btop has a program of the name of LSF's command."""
    host = site.hosts["n001"]
    assert host.run(FOREIGN).stdout == "the monitor\n"
    assert host.run("btop").stdout == "the monitor\n"
    assert "Usage: btop" in host.run("lavactl btop -h", check=False).stdout + host.run("lavactl btop -h").stderr


def test_a_limit_means_the_same_on_the_hosts(site: Site) -> None:
    """500 MB, without any of the master's configuration copied to them."""
    host = site.hosts["n002"]
    host.run("bsub -H -J limit -M 500 -o /dev/null true", USER)
    assert host.run("bjobs -noheader -o memlimit -J limit", USER).stdout.split() == ["500", "Mbytes"]
    host.run("bkill -J limit", USER)
    named = host.run("badmin showconf mbd | sed -n 's/^ *LSF_CONFDIR = //p'", USER).stdout.strip()
    assert "DEFAULT_QUEUE" in host.run(f"cat {named}/lsbatch/mycluster/configdir/lsb.params", USER).stdout


def test_what_lavactl_writes_belongs_to_the_master(site: Site) -> None:
    """As root and as the service user alike; hosts that join are not refused for it."""
    master = site.hosts["master"]
    master.run("runuser -u lava -- lavactl init /etc/lava --new-ticket --host n003")
    master.run("lavactl init /etc/lava --new-ticket --host n004")
    assert set(master.run("stat -c %U /etc/lava/* /etc/lava/ca/*").stdout.split()) == {"lava"}
    conf = master.run("cat /etc/lava/lava.conf").stdout
    assert "LAVA_STATE_DIR=/var/lib/lava\n" in conf
    assert 'LAVA_ADMINISTRATORS="root alice"' in conf
    refused = site.hosts["n001"].run("badmin hclose n002", check=False)
    assert refused.returncode != 0


def test_daemons_restart_and_say_their_version(site: Site) -> None:
    """Under systemd, with a job running, which does not notice."""
    host = site.hosts["n001"]
    host.run("bsub -J lives -m n001 -o lives.out 'sleep 20; echo lived'", USER)
    host.run("systemctl restart lava-agent")
    site.hosts["master"].run("systemctl restart lavad lava-agent")
    until_ok(site, "n001", "n002")
    host.run("bwait() { while bjobs -J lives -noheader | grep -q RUN; do sleep 1; done; }; bwait", USER)
    assert "lived" in host.run("cat lives.out", USER).stdout
    for words in ("lavad -V", "lava-agent -V", "lavactl -V"):
        assert host.run(words).stdout.split()[-1][0].isdigit()


def test_every_command_does_its_plain_use(site: Site) -> None:
    """The tour of all commands, by administrator and user; each answers as the tour says."""
    assert "\n".join(tour.follow(site.hosts, tour.uses())) == ""


def test_every_process_of_the_master_serves(site: Site) -> None:
    """All children of lavad that have a name are there, none of them started anew meanwhile; nothing is amiss."""
    master = site.hosts["master"]
    found = master.run("ps -o comm= --ppid $(systemctl show -P MainPID lavad)").stdout.split()
    assert sorted(found) == sorted(CHILDREN)
    assert "problem" not in master.run("badmin showstatus").stdout.lower()
    for host in site.hosts.values():
        assert host.run("systemctl --failed --no-legend --plain").stdout == ""


def test_the_journals_hold_no_error(site: Site) -> None:
    """No traceback, no line of level ERROR and nothing of an error's priority from any of lava's processes."""
    wrong = {name: journal_of_errors(host) for name, host in site.hosts.items()}
    assert {name: lines for name, lines in wrong.items() if lines} == {}


def test_a_unit_that_forbids_what_lava_does_is_noticed(site: Site) -> None:
    """With setpriority taken away again the journal has errors, and histories are answered all the same."""
    master = site.hosts["master"]
    place = "/etc/systemd/system/lavad.service.d/planted.conf"
    since = master.run("date +%s").stdout.strip()
    master.run(f"printf '[Service]\\nSystemCallFilter=~setpriority\\n' >{place}; systemctl daemon-reload")
    master.run("systemctl restart lavad")
    until_ok(site, "n001", "n002")
    assert site.hosts["n001"].run("bhist -a -u all", USER).stdout
    said = journal_of_errors(master, f"--since=@{since}")
    master.run(f"rm {place}; systemctl daemon-reload; systemctl restart lavad")
    until_ok(site, "n001", "n002")
    assert any("must allow setpriority" in line for line in said), said


def test_a_lost_key_of_the_authority_keeps_no_host_from_its_work(site: Site) -> None:
    """The master starts, says what is lost, and makes no ticket that would be good for nothing."""
    master = site.hosts["master"]
    master.run("mv /etc/lava/ca/ca.key /srv/ca.key; systemctl restart lavad")
    until_ok(site, "n001", "n002")
    assert "ca.key is lost" in " ".join(master.run("badmin showstatus").stdout.split())
    assert "ca.key is lost" in master.run("systemctl status lavad", check=False).stdout
    refused = master.run("lavactl init /etc/lava --new-ticket --host n009", check=False)
    assert refused.returncode != 0
    assert "ca.key is lost" in refused.stderr
    master.run("mv /srv/ca.key /etc/lava/ca/ca.key")
    master.run("lavactl init /etc/lava --new-ticket --host n009")


def test_an_error_in_a_file_keeps_no_master_down(site: Site) -> None:
    """It starts by the rules of before; systemctl status and badmin showstatus say so until the file is mended."""
    master = site.hosts["master"]
    master.run("cp /etc/lava/lsb.queues /srv; sed -i 's/QUEUE_NAME = night/&\\nPRIORITY = high/' /etc/lava/lsb.queues")
    master.run("systemctl restart lavad")
    until_ok(site, "n001", "n002")
    for command in ("systemctl status lavad", "badmin showstatus"):
        said = " ".join(master.run(command, check=False).stdout.split())
        assert "PRIORITY = high: expected" in said
    assert "night" in master.run("bqueues night").stdout
    master.run("cp /srv/lsb.queues /etc/lava/; badmin reconfig")
    assert "PRIORITY" not in master.run("badmin showstatus").stdout


def test_a_host_leaves_and_another_comes_back(site: Site, page: list[Block]) -> None:
    """n002 is switched off and removed; n001 loses its state, as by a new installation, and joins again."""
    remove, replace = (block for block in page if block.section == LEAVING)
    site.hosts["n002"].run("systemctl disable --now lava-agent")
    site.follow(remove)
    until_ok(site, "n001")
    site.hosts["n002"].run("systemctl start lava-agent")
    site.hosts["n001"].run("systemctl stop lava-agent && rm -rf /var/lib/lava-agent")
    site.follow(replace)
    site.follow(Block(LEAVING, "the master", "root", "scp -p /etc/lava/ticket.n001 n001:/etc/lava/ticket\n"))
    site.hosts["n001"].run("systemctl start lava-agent")
    until_ok(site, "n001")
    assert "n002" not in site.hosts["master"].run("bhosts; lshosts; lsload").stdout
    journal = site.hosts["n002"].run("journalctl -u lava-agent -o cat --no-pager | tail -5").stdout
    assert "revoked" in journal
