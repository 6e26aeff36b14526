"""lavactl up: create a personal cluster on this machine, or start the missing parts of an existing one."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lavactl.errors import CommandError, UsageError
from lavactl.io import Io
from lavactl.options import VALUE, Options, answer_standard
from lavactl.personal import check_config, create, daemons, path_dir, site_files, state_file, up_down
from lavactl.personal import directory as files
from lavactl.personal.hosts import wait_hosts
from lavactl.personal.hosts.network import HOSTS_MAX
from lavactl.personal.options import directory as named_directory
from lavactl.personal.options import number, own_directory, parse, value
from lavactl.personal.trust import check_directory

USAGE = """\
Usage: lavactl up [--hosts N] [--slots M] [--dir D] [--db URL] [--simulate-gpus G] [--conf-from D2]
Makes a cluster of N hosts on this machine, or starts what does not run of the one in D, which keeps its size and state.
  --hosts N          hosts of a new cluster (2)
  --slots M          slots of each host (the number of processors)
  --dir D            where the cluster lives ($XDG_DATA_HOME/lava/personal)
  --db URL           database of a new cluster: sqlite:///PATH or postgresql+psycopg://... (SQLite in D)
  --simulate-gpus G  GPUs that each host pretends to have (0)
  --conf-from D2     LSF's files (lsb.queues, lsb.params, ...) for a new cluster are copied from D2
"""
KINDS = {"hosts": VALUE, "slots": VALUE, "dir": VALUE, "db": VALUE, "simulate-gpus": VALUE, "conf-from": VALUE}
SLOTS_MAX = 100_000
GPUS_MAX = 64
DEFAULT_HOSTS = 2
HOSTS_READY_S = 30.0
# Each agent needs about a second of processor time to start.
HOSTS_READY_S_PER_HOST = 1.5


def main(argv: list[str], io: Io) -> int:
    """Start the cluster and print its description."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    options = parse(argv, USAGE, "up", KINDS)
    if options.words:
        raise UsageError(f"lavactl up: {options.words[0]!r} is not an option", USAGE)
    directory = own_directory(options, io)
    check_directory(directory)
    wishes = _wishes(options, io)
    files.check_database(wishes.database)
    is_new = state_file.load(directory) is None
    if is_new and wishes.lsf_files is not None:
        for warning in check_config.check(wishes.lsf_files):
            io.error(warning)
    with _made(directory), state_file.locked(directory):
        cluster = create.make(directory, wishes, io.user_name()) if is_new else state_file.existing(directory)
        if not is_new:
            _say_what_is_ignored(options, cluster, io)
        elif wishes.lsf_files is not None:
            for note in wishes.lsf_files.notes:
                io.error(note)
        cluster = _start(directory, cluster, io)
    _describe(directory, cluster, io)
    return 0


def _wishes(options: Options, io: Io) -> create.Wishes:
    source = value(options, "conf-from")
    return create.Wishes(
        hosts=number(options, "hosts", 1, HOSTS_MAX) or DEFAULT_HOSTS,
        slots=number(options, "slots", 1, SLOTS_MAX) or os.cpu_count() or 1,
        gpus=number(options, "simulate-gpus", 0, GPUS_MAX) or 0,
        database=value(options, "db"),
        lsf_files=None if source is None else site_files.find(named_directory(source, io)),
    )


@contextmanager
def _made(directory: Path) -> Iterator[None]:
    """Create the directory if missing, and remove it again if it was new and no cluster was made in it."""
    is_new = not directory.exists()
    try:
        files.make_directory(directory, 0o755)
    except OSError as error:
        raise CommandError(f"{directory} cannot be made: {error.strerror}.") from error
    try:
        yield
    except BaseException:
        if is_new and state_file.load(directory) is None:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def _say_what_is_ignored(options: Options, cluster: state_file.Cluster, io: Io) -> None:
    kept = {"hosts": len(cluster.hosts), "slots": cluster.slots, "simulate-gpus": cluster.gpus}
    for name, present in kept.items():
        given = value(options, name)
        if given is not None and int(given) != present:
            io.error(f"The cluster exists and keeps its size: --{name} {present}, not {given}.")
    if value(options, "db") is not None:
        io.error("The cluster exists and keeps its database: --db is ignored.")
    if value(options, "conf-from") is not None:
        io.error("The cluster exists and keeps its configuration: --conf-from is ignored.")


def _start(directory: Path, cluster: state_file.Cluster, io: Io) -> state_file.Cluster:
    """Start the cluster; after a failure take it down again if it was entirely down before.

    A master that waits for its administrator is left running: what it asks for can then be done.
    """
    ran_before = not set(daemons.all_names(cluster)) <= set(daemons.missing(cluster, state_file.Table(directory)))
    try:
        cluster = up_down.bring_up(directory, cluster)
        patience_s = HOSTS_READY_S + HOSTS_READY_S_PER_HOST * len(cluster.hosts)
        gone = daemons.removed(directory, cluster)
        everyone = (cluster.login, *(host for host in cluster.hosts if host not in gone))
        wait_hosts.wait_for_hosts(
            cluster.socket(cluster.login),
            everyone,
            directory / "log",
            patience_s,
            lambda: daemons.check_running(directory, cluster),
            lambda problem: io.error(f"{problem}\n{_where_to_type(directory)}"),
        )
    except wait_hosts.HeldUpError as error:
        raise CommandError(f"{error}\nThe cluster is left running.") from None
    except BaseException:
        if not ran_before:
            up_down.take_down(directory, cluster)
        raise
    return cluster


def _where_to_type(directory: Path) -> str:
    return (
        f"Commands about its database take  --conf {path_dir.shell_word(str(directory))}  in other shells than its own."
    )


def _describe(directory: Path, cluster: state_file.Cluster, io: Io) -> None:
    gone = daemons.removed(directory, cluster)
    hosts = [host for host in cluster.hosts if host not in gone]
    noun = "host" if len(hosts) == 1 else "hosts"
    io.print(
        f"The cluster in {directory} is up: {len(hosts)} {noun} with {cluster.slots} slots each ({' '.join(hosts)})."
    )
    if gone:
        io.print(f"Removed by badmin hremove: {' '.join(sorted(gone))}.")
    if cluster.mode is state_file.Mode.LOOPBACK:
        io.print(
            "Namespaces are closed here: its hosts are loopback addresses, and MPI over several hosts is left out."
        )
    if os.geteuid() == 0 and (closed := path_dir.closed_to_others(cluster.commands / "bsub", Path(sys.executable))):
        io.print(f"Other users than root cannot use it: lava's programs are below {closed}, which is closed to them.")
    io.print(f'To use it in this shell:  eval "$(lavactl env --dir {path_dir.shell_word(str(directory))})"')
