"""Program of the master: command line, logging, and the order of its start.

The child processes are forked before gRPC is imported, while this process has one thread; see ``child_process``.
"""

import argparse
import gc
import os
import sys
from pathlib import Path

from lavad.version import VERSION
from protos import logs


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("lavad", description="lava's master: queues, jobs and scheduling.")
    parser.add_argument("--conf", default=os.environ.get("LAVA_ENVDIR", "/etc/lava"), help="directory of lava.conf")
    parser.add_argument("--pid-file", type=Path, help="write the process id there")
    parser.add_argument("--check", action="store_true", help="check all invariants after every change (slow)")
    parser.add_argument("--check-config", action="store_true", help="only check LSF's configuration files")
    parser.add_argument("-V", "--version", action="version", version=VERSION)
    return parser.parse_args(argv)


def _prepare_children() -> None:
    """Fork the child processes with all that they import; the master imports the same modules anyway."""
    from lavad.api.history import reader_process
    from lavad.store import child_process, lsf_logs_process, writer_process

    mains = {module.__name__: module.main for module in (writer_process, lsf_logs_process, reader_process)}
    child_process.prepare(mains)


def main(argv: list[str] | None = None) -> int:
    """Run the master; return 0 when told to stop, 1 with one sentence on stderr when it can't start or go on."""
    os.environ["GRPC_DNS_RESOLVER"] = "native"
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # else numpy starts a thread for each processor, and none is ever used
    arguments = _parse(sys.argv[1:] if argv is None else argv)
    logs.start_logging()
    gc.disable()  # imported objects stay: collections meanwhile would find nothing, and take a tenth of the time
    if not arguments.check_config:
        _prepare_children()
    # From here on there may be threads of gRPC, started by this import.
    from lavad import master

    gc.enable()
    return master.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
