"""Command lines of `lavactl adopt`, `backup`, `compact`, `restore`, `migrate-database`; a sentence for each error."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from lavad.maintenance import adopt
from lavad.settings import Settings, read_settings
from lavad.store.errors import StoreRefused
from protos.conffile import ConfError


def main(argv: list[str]) -> int:
    """Run one of the commands; its exit code."""
    options = _parse(argv)
    run: Callable[[argparse.Namespace], list[str]] = options.run
    try:
        for line in run(options):
            sys.stdout.write(f"{line}\n")
    except (StoreRefused, ConfError) as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename or 'The state directory'}: {error.strerror}.")
    return 0


def _complain(sentence: str) -> int:
    sys.stderr.write(f"{sentence}\n")
    return 1


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("lavactl")
    commands = parser.add_subparsers(required=True)
    one = _command(commands, "adopt", _adopt, "have master and hosts agree anew, after a backup was restored or so")
    one.add_argument("--wait", type=float, default=30.0, metavar="SECONDS", help="how long lavad may take (30)")
    one = _command(commands, "backup", _backup, "copy the database to a file; lavad may run")
    one.add_argument("file", type=Path, metavar="FILE")
    _command(commands, "compact", _compact, "give the room of purged jobs back to the file system; lavad may run")
    one = _command(commands, "restore", _restore, "put a backup in the place of the database; lavad must not run")
    one.add_argument("file", type=Path, metavar="FILE")
    one = _command(commands, "migrate-database", _migrate, "copy the cluster to an empty database; lavad must not run")
    one.add_argument(
        "source",
        metavar="FROM",
        help="sqlite:///PATH, postgresql://USER@HOST/NAME, or @FILE: a file of mode 0600 with such a URL",
    )
    one.add_argument("target", metavar="TO", help="the same")
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], list[str]],
    words: str,
) -> argparse.ArgumentParser:
    one = commands.add_parser(name, help=words, description=f"lavactl {name}: {words}.")
    one.add_argument(
        "--conf", type=Path, default=Path(os.environ.get("LAVA_ENVDIR", "/etc/lava")), help="directory of lava.conf"
    )
    one.set_defaults(run=run, parser=one)
    return one


def _settings(options: argparse.Namespace) -> Settings:
    return read_settings(options.conf)


def _adopt(options: argparse.Namespace) -> list[str]:
    return adopt.ask(_settings(options).state_dir, options.wait)


def _backup(options: argparse.Namespace) -> list[str]:
    from lavad.maintenance import backup

    with _complaints_of_database():
        return backup.make(_settings(options).database, options.file.absolute())


def _compact(options: argparse.Namespace) -> list[str]:
    from lavad.maintenance import compact

    with _complaints_of_database():
        return list(compact.run(_settings(options).database))


def _restore(options: argparse.Namespace) -> list[str]:
    from lavad.maintenance import backup

    with _complaints_of_database():
        return backup.restore(_settings(options).database, options.file.absolute())


def _migrate(options: argparse.Namespace) -> list[str]:
    from lavad.maintenance import transfer

    with _complaints_of_database():
        return transfer.move(options.source, options.target)


@contextlib.contextmanager
def _complaints_of_database() -> Iterator[None]:
    """Turn what the database says into a sentence. Imports what `lavactl adopt`, which needs no database, does not."""
    from sqlalchemy.exc import DBAPIError

    from lavad.store.database import database

    try:
        yield
    except DBAPIError as error:
        raise StoreRefused(f"The database can't be used: {database.sentence_of(error)}.") from error
