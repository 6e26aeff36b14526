"""badmin: administration of the batch system: configuration, hosts and queues."""

from lavactl.errors import FAILURE, CommandError, UsageError
from lavactl.options import FLAG, VALUE, Grammar, Ignored, Options, answered, printable
from protos import cluster_pb2
from protos.names import is_lock_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lavactl.io import Io

USAGE = """\
Usage: badmin ckconfig [-v]
       badmin reconfig [-v] [-f] [-C comment]
       badmin mbdrestart [-v] [-f] [-C comment] [-p | -s]
       badmin showconf mbd [all]
       badmin showstatus
       badmin perfmon start [period] | stop | view [-json] | setperiod period
       badmin diagnose job_id ... | -c query [-f file] [-d minutes] | -c query -o
       badmin hist | mbdhist [-t time0,time1] [-f file]
       badmin hhist [-t time0,time1] [-f file] [host ...]
       badmin qhist [-t time0,time1] [-f file] [queue ...]
       badmin hopen [-i "lock_id ..." | -i all] [-C comment] [host ... | host_group ... | all]
       badmin hclose [-i lock_id | -revoke seconds] [-C comment] [host ... | host_group ... | all]
       badmin hghostadd [-C comment] host_group | host_partition host ...
       badmin hghostdel [-f] [-C comment] host_group | host_partition host ...
       badmin hremove [-C comment] host ...
       badmin qopen | qclose | qact | qinact [-C comment] [queue ... | all]
       badmin help [subcommand ...] | quit
       badmin -h | -V
  without a subcommand it takes one a line, at the prompt badmin>, to quit or the end of the input
  time: [[year/]month/]day[/hour:minute], . for now, .-n/ for n days ago; -f reads an lsb.events file
"""
HOST_ACTIONS = {"hopen": ("Open", cluster_pb2.OPEN_HOST), "hclose": ("Close", cluster_pb2.CLOSE_HOST)}
REMOVAL = {"hremove": ("Remove", cluster_pb2.REMOVE_HOST)}
QUEUE_ACTIONS = {
    "qopen": ("opened", cluster_pb2.OPEN_QUEUE),
    "qclose": ("closed", cluster_pb2.CLOSE_QUEUE),
    "qact": ("activated", cluster_pb2.ACTIVATE_QUEUE),
    "qinact": ("inactivated", cluster_pb2.INACTIVATE_QUEUE),
}
GROUP_ACTIONS = {
    "hghostadd": ("added to", cluster_pb2.ADD_TO_GROUP),
    "hghostdel": ("deleted from", cluster_pb2.DELETE_FROM_GROUP),
}
HISTORIES = ("hist", "qhist", "hhist", "mbdhist")
NOTICE_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
KINDS: "dict[str, dict[str, int | str]]" = {
    "ckconfig": {"v": FLAG},
    "reconfig": {"v": FLAG, "f": FLAG, "C": VALUE},
    "showconf": {},
    "showstatus": {},
    "help": {},
    "quit": {},
    "diagnose": {**dict.fromkeys(("c", "f", "d"), VALUE), "o": FLAG},
    "perfmon": {"json": FLAG},
    **{name: {"t": VALUE, "f": VALUE} for name in HISTORIES},
    **{name: {"C": VALUE} for name in (*REMOVAL, *QUEUE_ACTIONS)},
    "hghostadd": {"C": VALUE},
    "hghostdel": {"C": VALUE, "f": FLAG},
    "hopen": dict.fromkeys("Ci", VALUE),
    "hclose": dict.fromkeys(("C", "i", "revoke"), VALUE),
}
KINDS["mbdrestart"] = {
    **KINDS["reconfig"],
    **dict.fromkeys("ps", Ignored(FLAG, "the master answers requests while it reads the files.")),
}
GRAMMARS = {name: Grammar(f"badmin {name}", USAGE, kinds) for name, kinds in KINDS.items()}
SERVICE_VERBS = {"startup": "start", "shutdown": "stop", "restart": "restart"}
_SERVICE = "lava-agent is a service of each host; as root there: systemctl {} lava-agent. Jobs run on."
# Subcommands of LSF that are refused, with the reason.
REFUSED = {
    "security": "badmin showconf mbd shows the settings; passwords and keys are none of LSF's.",
    **{f"h{what}": _SERVICE.format(verb) for what, verb in SERVICE_VERBS.items()},
    **dict.fromkeys(
        ("mbddebug", "sbddebug", "schddebug", "mbdtime", "sbdtime", "schdtime"),
        "the daemons have no debug classes to be set.",
    ),
    **dict.fromkeys(("gpdrestart", "gpddebug", "gpdtime"), "there is no daemon for global policies."),
    "lshutdown": "there is no licence scheduler.",
    "hpower": "lava does not switch the power of hosts.",
    "rc": "there is no resource connector; badmin hclose -revoke and hremove are for hosts that go.",
    "jobresgrp": "there are no resource groups of jobs.",
    "hpe": "there is no interface to that vendor's machines.",
}


def main(argv: list[str], io: "Io") -> int:
    """Run badmin."""
    if answered(argv, USAGE, io):
        return 0
    if not argv:
        from lavactl.admin import prompt

        return prompt.converse("badmin", io)
    name, rest = argv[0], argv[1:]
    if name.startswith("-"):
        raise UsageError(f"badmin: illegal option -- {printable(name[1:])}", USAGE)
    if name in REFUSED:
        raise CommandError(f"badmin {name}: {REFUSED[name]}")
    run = SUBCOMMANDS.get(name)
    if run is None:
        raise UsageError(f"badmin: {printable(name)}: no such subcommand", USAGE)
    return run(name, rest, io)


def _configuration(name: str, argv: list[str], io: "Io") -> int:
    from lavactl.views import configuration

    options = GRAMMARS[name].parse(argv)
    if options.words:
        raise UsageError(f"badmin {name}: takes no names", USAGE)
    for note in GRAMMARS[name].notes(options):
        io.error(note)
    if name == "ckconfig":
        return configuration.check(io, "v" in options)
    return configuration.reconfigure(io, "v" in options, options.last("C") or "")


def _show(name: str, argv: list[str], io: "Io") -> int:
    from lavactl.views import master_status

    words = GRAMMARS[name].parse(argv).words
    if name == "showstatus":
        if words:
            raise UsageError("badmin showstatus: takes no names", USAGE)
        return master_status.show_status(io)
    if words not in (["mbd"], ["mbd", "all"]):
        raise UsageError("badmin showconf: only mbd has settings of its own; hosts follow the master", USAGE)
    return master_status.show_configuration(io)


def _help(name: str, argv: list[str], io: "Io") -> int:
    from lavactl.admin import prompt

    words = GRAMMARS[name].parse(argv).words
    return prompt.give_help("badmin", USAGE, words, io) if name == "help" else 0


def _diagnose(name: str, argv: list[str], io: "Io") -> int:
    from lavactl.admin import diagnosis

    return diagnosis.diagnose(GRAMMARS[name].parse(argv), USAGE, io)


def _perfmon(name: str, argv: list[str], io: "Io") -> int:
    from lavactl.admin import performance

    options = GRAMMARS[name].parse(argv)
    return performance.perfmon(options.words, USAGE, io, as_json="json" in options)


def _history(name: str, argv: list[str], io: "Io") -> int:
    from lavactl.admin import control_history

    options = GRAMMARS[name].parse(argv)
    if options.words and name in ("hist", "mbdhist"):
        raise UsageError(f"badmin {name}: takes no names", USAGE)
    return control_history.show(name, options, io)


def _control(name: str, argv: list[str], io: "Io") -> int:
    """Open, close or remove hosts, or open, close, activate or inactivate queues."""
    options = GRAMMARS[name].parse(argv)
    word, action = (HOST_ACTIONS | REMOVAL | QUEUE_ACTIONS)[name]
    if name in REMOVAL and not options.words:
        raise UsageError("badmin hremove: name the hosts that are to be removed", USAGE)
    request = cluster_pb2.ControlRequest(
        action=action,
        names=options.words,
        comment=options.last("C") or "",
        all=options.words == ["all"],
        notice_s=_notice_s(options, name),
        lock_ids=_lock_ids(options, name),
    )
    reply = io.client().control(request)
    failed = [result for result in reply.results if result.error]
    for result in reply.results:
        if name not in QUEUE_ACTIONS:
            done = f"done : {result.note}" if result.note else "done"
            io.error(f"{word} <{printable(result.name)}> ...... {printable(result.error or done)}")
        elif not result.error:
            io.print(f"Queue <{result.name}> is {word}")
    io.flush()
    for result in failed if name in QUEUE_ACTIONS else ():
        said = result.error if result.error.startswith(result.name) else f"{result.name}: {result.error}"
        io.error(printable(said))
    return FAILURE if failed or not reply.results else 0


def _host_group(name: str, argv: list[str], io: "Io") -> int:
    """Add hosts to a host group, or after a question delete them from it."""
    options = GRAMMARS[name].parse(argv)
    word, action = GROUP_ACTIONS[name]
    if len(options.words) < 2:
        raise UsageError(f"badmin {name}: name a host group, and behind it hosts", USAGE)
    group, hosts = options.words[0], options.words[1:]
    if name == "hghostdel" and "f" not in options and not _is_confirmed(group, hosts, io):
        raise CommandError(f"Nothing was deleted from host group <{printable(group)}>", FAILURE)
    comment = options.last("C") or ""
    request = cluster_pb2.ControlRequest(action=action, group=group, names=hosts, comment=comment)
    for result in io.client().control(request).results:
        io.print(printable(f"Host <{result.name}> is {word} host group <{group}>"))
    return 0


def _is_confirmed(group: str, hosts: list[str], io: "Io") -> bool:
    io.print(printable(f"Delete {' '.join(hosts)} from host group <{group}>? [y/n] "), end="")
    io.flush()
    return io.stdin.readline().strip().lower() in (b"y", b"yes")


def _lock_ids(options: Options, name: str) -> list[str]:
    """Lock IDs of -i: one for hclose, any number or ``all`` for hopen."""
    if "i" not in options:
        return []
    text = options.last("i") or ""
    lock_ids, expected = text.split(), "one lock ID" if name == "hclose" else "lock IDs"
    is_right = lock_ids and all(map(is_lock_id, lock_ids))
    if "all" in lock_ids and (name == "hclose" or len(lock_ids) > 1):
        raise UsageError(f"badmin {name}: -i {printable(text)}: no lock ID is called all", USAGE)
    if not is_right or (name == "hclose" and len(lock_ids) > 1):
        form = "1 to 128 letters, digits and underscores"
        raise UsageError(f"badmin {name}: -i {printable(text)}: expected {expected} of {form}", USAGE)
    if "revoke" in options:
        raise UsageError("badmin hclose: -i and -revoke don't go together", USAGE)
    return lock_ids


def _notice_s(options: Options, name: str) -> float:
    """Seconds until the hosts are taken away, as ``30``, ``30s`` or ``2m``; 0 if they are only closed."""
    if name != "hclose" or "revoke" not in options:
        return 0.0
    text = options.last("revoke") or ""
    number, unit = (text[:-1], text[-1]) if text[-1:] in NOTICE_UNITS else (text, "s")
    if not number.isdecimal() or not 0 < int(number[:9]) * NOTICE_UNITS[unit] <= NOTICE_UNITS["d"] * 7:
        raise UsageError(f"badmin hclose: -revoke {printable(text)}: expected 1 s to 7 days, as 30, 30s or 2m", USAGE)
    if not options.words:
        raise UsageError("badmin hclose: -revoke needs the names of the hosts that will be taken away", USAGE)
    return float(int(number) * NOTICE_UNITS[unit])


SUBCOMMANDS: "dict[str, Callable[[str, list[str], Io], int]]" = {
    "ckconfig": _configuration,
    "reconfig": _configuration,
    "mbdrestart": _configuration,  # the master reads new files without a restart
    "showconf": _show,
    "showstatus": _show,
    "help": _help,
    "quit": _help,
    "diagnose": _diagnose,
    "perfmon": _perfmon,
    **dict.fromkeys(HISTORIES, _history),
    **dict.fromkeys(GROUP_ACTIONS, _host_group),
    **dict.fromkeys((*HOST_ACTIONS, *REMOVAL, *QUEUE_ACTIONS), _control),
}
