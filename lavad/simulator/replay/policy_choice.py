"""Policy of a replay: a textbook policy, or the configuration of a cluster."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lavad.config.load import Loaded, find_directory, load, within
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.job_order import JobOrder
from lavad.settings import Settings, read_settings
from lavad.simulator.replay import textbook
from protos.conffile import FILE_NAME, ConfError

POLICIES = (*textbook.QUEUES, "lava")


def configured(directory: Path | None, environment: Mapping[str, str], own: Path | None = None) -> Policy:
    """Read the policy of the cluster whose lava.conf or LSF files are in a directory; None: the environment names it.

    Without any, lava's default policy. A directory that is neither ``own`` nor the environment's is a copy, of which
    nothing outside is read; standard error says what was looked for elsewhere.

    Raises:
        ConfError: there are no such files, or they have errors: a line each.
    """
    place = directory or _own_directory(environment)
    if place is None:
        return Policy()
    if not place.is_dir():
        raise ConfError(f"{place}: there is no such directory.")
    loaded = _read(place, environment, _is_copy(place, environment, own))
    sys.stderr.write("".join(f"{one}\n" for one in loaded.moved))
    if loaded.errors:
        raise ConfError("\n".join(map(str, loaded.errors)))
    if directory is not None and not loaded.files and not (place / FILE_NAME).exists():
        raise ConfError(f"{place}: expected lava.conf or LSF's files (lsb.queues and the like), none is there.")
    return loaded.policy


def _own_directory(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("LAVA_ENVDIR") or environment.get("LSF_ENVDIR")
    return Path(named) if named else None


def _is_copy(place: Path, environment: Mapping[str, str], own: Path | None) -> bool:
    named = [environment.get("LAVA_ENVDIR"), environment.get("LSF_ENVDIR"), own]
    return all(one is None or place.resolve() != Path(one).resolve() for one in named)


def _read(place: Path, environment: Mapping[str, str], is_copy: bool) -> Loaded:
    if not (place / FILE_NAME).exists():
        return load(place, Policy(), is_copy=is_copy)
    settings = read_settings(place)
    directory = find_directory(place, settings.lsf_directory, {} if is_copy else environment)
    if is_copy and not within(directory, place):
        named = f"{place / FILE_NAME}: LAVA_LSF_DIR = {settings.lsf_directory}: expected a directory within {place}"
        raise ConfError(f"{named}, which is a copy; copy that one, too, and name it relative to lava.conf.")
    return load(directory, settings.policy(), settings.cluster, is_copy=is_copy)


def settings_of(directory: Path | None, environment: Mapping[str, str]) -> Settings:
    """Read lava.conf of the cluster whose history is replayed.

    Raises:
        ConfError: its lava.conf can't be used.
    """
    return read_settings(directory or Path(environment.get("LAVA_ENVDIR") or "/etc/lava"))


def rules(
    name: str, order: str | None, conf: Path | None, environment: Mapping[str, str], own: Path | None = None
) -> Policy:
    """Return the policy of that name, with no deadline that a replay's hosts could miss.

    ``own`` is the directory of the cluster itself: another one is a copy.

    Raises:
        ConfError: the configuration can't be used.
    """
    chosen = (
        textbook.policy(name)
        if name in textbook.QUEUES
        else textbook.without_deadlines(configured(conf, environment, own))
    )
    return in_order(chosen, JobOrder(order)) if order else chosen


def in_order(policy: Policy, order: JobOrder) -> Policy:
    """Return the policy with this job order in every queue."""
    return replace(policy, queues=tuple(replace(queue, order=order) for queue in policy.queues))
