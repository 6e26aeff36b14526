"""Program of the agent: command line, logging, pid file, and the order of its start.

The launcher starts before gRPC is imported; from then on this process never forks. The end of the agent, by SIGTERM or
by any accident, does not affect jobs and their shepherds: the next agent takes them over.
"""

import argparse
import gc
import logging
import os
import shutil
import socket
import sys
from pathlib import Path

from agents.state_directory import StateInUse, put_away
from protos import __version__
from protos.logs import start_logging
from protos.pidfile import PidFileInUse, pid_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agents.gpus.vendor import Vendor

LOG = logging.getLogger("lava.agent")

ROOT_STATE, ROOT_SOCKET = Path("/var/lib/lava-agent"), Path("/run/lava/agent.sock")


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse the command line; SystemExit with a usage message for a bad one."""
    parser = argparse.ArgumentParser("lava-agent", description="lava's agent: one on each host of the cluster.")
    parser.add_argument("--master", metavar="HOST:PORT", default=os.environ.get("LAVA_MASTER"))
    parser.add_argument("--ticket", type=Path, metavar="FILE", help="join ticket; needed until there is a certificate")
    parser.add_argument("--name", metavar="HOST", default=socket.gethostname(), help="the cluster's name for this host")
    parser.add_argument(
        "--state", type=Path, metavar="DIR", default=_own_directory() / "agent", help="spool and journal"
    )
    parser.add_argument("--socket", type=Path, metavar="PATH", default=_own_socket(), help="where commands connect")
    parser.add_argument("--slots", type=int, metavar="N", help="default: one for each core")
    parser.add_argument("--peer-listen", metavar="ADDR:PORT", default="0.0.0.0:0", help="for the agents of other hosts")
    parser.add_argument(
        "--revocable",
        action="store_true",
        default=bool(os.environ.get("LAVA_REVOCABLE")),
        help="this host may be taken away at short notice, as a spot instance (LAVA_REVOCABLE=1)",
    )
    parser.add_argument("--login", action="store_true", help="serve commands only, run no jobs")
    parser.add_argument(
        "--no-cgroups",
        action="store_true",
        default=bool(os.environ.get("LAVA_NO_CGROUPS")),
        help="hold jobs together by their process trees, as where there are no control groups (LAVA_NO_CGROUPS=1)",
    )
    parser.add_argument(
        "--elims", type=Path, metavar="DIR", default=Path(os.environ.get("LAVA_ENVDIR", "/etc/lava"), "elims")
    )
    parser.add_argument("--simulate-gpus", type=int, metavar="G", default=0)
    parser.add_argument("--pid-file", type=Path, metavar="F")
    parser.add_argument(
        "--shutdown", action="store_true", help="end all jobs of this state directory; no agent may run"
    )
    parser.add_argument("-V", "--version", action="version", version=__version__)
    options = parser.parse_args(argv)
    if not options.master and not options.shutdown:
        parser.error("--master is needed")
    if options.slots is not None and options.slots < 0:
        parser.error("--slots must not be negative")
    return options


def _own_directory() -> Path:
    if os.geteuid() == 0:
        return ROOT_STATE.parent / "lava-agent"
    return Path(os.environ.get("XDG_STATE_HOME", Path.home() / ".local/state")) / "lava"


def _own_socket() -> Path:
    return ROOT_SOCKET if os.geteuid() == 0 else _own_directory() / "agent.sock"


def main(argv: list[str] | None = None) -> int:
    """Run until told to stop; return the exit code."""
    options = parse(sys.argv[1:] if argv is None else argv)
    start_logging(os.environ.get("LAVA_LOG_LEVEL", "INFO").upper())
    # Names are resolved by the system, /etc/hosts included; gRPC's own resolver hangs if a name server is unreachable.
    os.environ["GRPC_DNS_RESOLVER"] = "native"
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    try:
        if options.shutdown:
            end_jobs(options.state)
            return 0
        return run_agent(options)
    except (StateInUse, PidFileInUse) as error:
        LOG.error("event=cannot_start reason=%r", str(error))
    except TimeoutError:
        LOG.error("event=not_shut_down reason='some processes cannot be killed'")
    except OSError as error:
        LOG.error("event=cannot_start reason=%r", f"{error.filename or options.state}: {error.strerror}")
    return 1


def end_jobs(state: Path) -> None:
    """End all jobs; most hosts have none when they are taken down, and an agent's parts are imported for some only."""
    if not put_away(state):
        from agents.shutdown import shut_down

        shut_down(state)


def run_agent(options: argparse.Namespace) -> int:
    """Assemble the agent and serve."""
    gc.disable()  # imported objects stay: collections meanwhile would find nothing, and take a tenth of the time
    import asyncio

    from agents import sensors
    from agents.assembly import Local
    from agents.gpus.vendors import vendor
    from agents.job_setup.host_context import HostContext

    gpus = vendor(options.simulate_gpus)
    slots = 0 if options.login else options.slots
    facts = sensors.facts(options.name, slots, options.simulate_gpus)
    if options.revocable:
        facts.resources.append("revocable")
    context = HostContext(
        host=options.name,
        socket=str(options.socket.absolute()),
        bin_dir=bin_dir(),
        env_dir=os.environ.get("LAVA_ENVDIR", ""),
        has_gpus=bool(facts.gpus),
        gpu_uuids=tuple(gpu.uuid for gpu in facts.gpus),
        gpu_devices=_gpu_devices(gpus) if facts.gpus else (),
        gpu_vendor=gpus.words,
        gpu_daemon=_gpu_daemon(gpus) if facts.gpus else "",
        oversubscribed=facts.slots * hosts_of_machine() > (os.cpu_count() or 1),
    )
    modes = gpus.modes()
    facts.can_set_gpu_mode, facts.has_mps = bool(facts.gpus) and modes.can_set(), bool(context.gpu_daemon)
    local = Local(context, options.state.absolute(), facts.slots, not options.no_cgroups, gpus)
    facts.cgroups = local.base.version > 0
    facts.keeps_leases = facts.runs_commands = facts.copies_files = facts.makes_checkpoints = True
    # From here on there may be threads of gRPC, started by this import.
    from agents.daemon import serve

    gc.enable()
    with pid_file(options.pid_file):
        return asyncio.run(serve(options, facts, local))


def _gpu_devices(gpus: "Vendor") -> tuple[str, ...]:
    from agents.gpus.device_files import device_numbers

    return device_numbers(gpus, os.environ.get("LAVA_GPU_DEVICES", "").split())


def _gpu_daemon(gpus: "Vendor") -> str:
    """Return the path of the vendor's daemon by which a job's processes share devices; empty if it is not here."""
    daemon = gpus.words.daemon
    return shutil.which(os.environ.get(daemon.control, daemon.program)) or "" if daemon else ""


def hosts_of_machine() -> int:
    """Return the number of agents that share this machine's CPUs: one, except in a personal cluster."""
    text = os.environ.get("LAVA_HOSTS_OF_MACHINE", "")
    return int(text) if text.isdigit() and int(text) else 1


def bin_dir() -> str:
    """Return the directory of the commands that jobs call, such as `blaunch`: $LAVA_BINDIR, or this program's."""
    given = os.environ.get("LAVA_BINDIR")
    if given:
        return given
    own = Path(sys.argv[0]).resolve().parent
    return str(own if (own / "blaunch").exists() else Path(sys.executable).absolute().parent)
