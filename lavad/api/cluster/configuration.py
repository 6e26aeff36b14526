"""Configuration files of a running master: read at start, checked (ckconfig), applied (reconfig).

The files are read in a thread: a directory service or an egroup program may be slow. If there are errors, the present
configuration stays in force.
"""

import asyncio
import logging
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lavad.api.cluster.installation import Installation, foreign_files
from lavad.config import last_good, lava_conf
from lavad.config.load import Loaded, find_directory, load
from lavad.config.names import NO_CHANGES
from lavad.core.commands import Caller, ChangeHostGroup, Reconfigure
from lavad.core.decide.reconfigure import changed_members
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import MemberChange
from lavad.engine import Engine
from lavad.settings import Settings, examine
from protos import cluster_pb2 as pb
from protos.conffile import FILE_NAME, ConfError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lavad.api.agents import AgentService
    from lavad.api.jobs.job_service import JobService

log = logging.getLogger(__name__)

LOOK_S = 1.0


def read_policy(
    settings: Settings, hosts: frozenset[str] = frozenset(), group_changes: Mapping[str, MemberChange] = NO_CHANGES
) -> Loaded:
    """Read the site's policy: the LSF files over the settings of lava.conf, with ``hosts`` as joined hosts and what
    badmin has changed of host groups. Blocks."""
    directory = find_directory(settings.directory, settings.lsf_directory, os.environ)
    loaded = load(directory, settings.policy(), settings.cluster, joined=hosts, group_changes=group_changes)
    about = (*loaded.complaints, *foreign_files(settings, loaded, directory), *lava_conf.complaints(settings.directory))
    return replace(loaded, complaints=about)


def read_files(directory: Path) -> Loaded:
    """Read LSF's files alone, of a directory that is no cluster's yet. Blocks.

    Raises:
        ConfError: there are none.
    """
    loaded = load(directory, Policy())
    if not loaded.files:
        raise ConfError(f"{directory}: expected {FILE_NAME} or LSF's files.")
    return loaded


def settings_at_start(directory: Path) -> Settings:
    """Read lava.conf for a master that starts; in the place of what is wrong in it the last good settings count.

    Raises:
        ConfError: it can't be used, and there are no last good ones; every complaint, a line each.
    """
    settings, wrong = examine(directory)
    good = last_good.recall(settings.state_dir) if wrong else None
    if wrong and good is None:
        raise ConfError("\n".join(wrong))
    return examine(directory, good.values)[0] if good is not None else settings


def policy_at_start(
    settings: Settings, hosts: frozenset[str] = frozenset(), group_changes: Mapping[str, MemberChange] = NO_CHANGES
) -> tuple[Loaded, str]:
    """Read the policy for a master that starts, and a sentence if the files have errors and the last good one counts.

    A master never runs with a part of a policy: a limit or a list of users that can't be read would be none.

    Raises:
        ConfError: there are errors, and no last good policy; every fatal complaint, a line each.
    """
    loaded = read_policy(settings, hosts, group_changes)
    if not loaded.errors:
        _keep(settings, loaded)
        return loaded, ""
    good = last_good.recall(settings.state_dir)
    found = _reread(good, settings, hosts, group_changes) if good is not None else loaded
    if good is None or found.errors:
        raise ConfError("\n".join(map(str, loaded.errors)))
    more = f" and {len(loaded.errors) - 1} more errors" if len(loaded.errors) > 1 else ""
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(good.at))
    return found, f"The configuration as of {at} is in force: {loaded.errors[0]}{more}. See badmin ckconfig."


def _keep(settings: Settings, loaded: Loaded) -> None:
    last_good.keep(settings.state_dir, [settings.directory / FILE_NAME, *map(Path, loaded.files)])


def _reread(
    good: last_good.LastGood, settings: Settings, hosts: frozenset[str], changes: Mapping[str, MemberChange]
) -> Loaded:
    """Read the policy from texts that were kept."""
    with good.written() as name:
        base, place = settings.policy(), Path(name)
        return load(place, base, settings.cluster, joined=hosts, group_changes=changes, is_copy=True)


def gone_groups(loaded: Loaded, changes: Iterable[str]) -> tuple[str, ...]:
    """Return the changed host groups that the files don't have at any time."""
    states = (loaded, *loaded.variants.values())
    known = {row.name for state in states for row in state.policy.host_group_rows}
    return tuple(name for name in changes if name not in known)


def log_warnings(loaded: Loaded) -> None:
    """Write the warnings to the log."""
    for warning in loaded.warnings:
        log.warning("configuration=warning file=%s line=%d reason=%r", warning.file, warning.line, warning.text)


class Configurator:
    """Checks and applies the configuration, one request at a time, for the services that need the administrators."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        services: "list[AgentService | JobService]",
        installation: Installation,
        loaded: Loaded,
        problem: str = "",
    ) -> None:
        """``problem`` is a sentence if the files have errors, and ``loaded`` is the last good configuration."""
        self.engine = engine
        self._loaded = loaded  # in force, with its variants for other times
        self._state = loaded.held
        self.installation = installation
        self.applied_at = 0.0  # 0: not since the start
        self.settings = settings  # with only the administrators of lava.conf
        self.services = services
        self.problem = problem
        self._turn = asyncio.Lock()
        self.on_applied: Callable[[Loaded], None] = lambda loaded: None

    def admit(self) -> Settings:
        """Give all services the present cluster administrators."""
        administrators = self.engine.cluster.policy.administrators
        present = replace(self.settings, administrators=administrators)
        for service in self.services:
            service.settings = present
        return present

    async def run(self, apply: bool) -> pb.ConfigureReply:
        """Check the files; with ``apply`` and without errors, put them into force."""
        async with self._turn:
            loaded = await self._read(self.engine.cluster.group_changes)
            reply = _reply(loaded)
            if apply and not loaded.errors:
                gone = gone_groups(loaded, self.engine.cluster.group_changes)
                await self._take(loaded, Reconfigure(loaded.policy, gone))
                reply.applied = True
            return reply

    async def change_host_group(self, group: str, hosts: tuple[str, ...], is_added: bool, by: Caller, why: str) -> None:
        """Change the members of a host group, and put the files into force with it.

        Raises:
            Refused: there is no such group or host, it would change nothing, or the configuration has errors then.
        """
        async with self._turn:
            loaded = await self._with_members(group, hosts, is_added, by, frozenset())
            members = loaded.policy.host_groups[group]
            # The files may name what hghostadd has added, or not name any more what hghostdel has deleted.
            against = frozenset([host for host in hosts if (host in members) is not is_added])
            if against:
                loaded = await self._with_members(group, hosts, is_added, by, against)
            await self._take(loaded, ChangeHostGroup(group, hosts, is_added, by, why, loaded.policy, against))

    async def _with_members(
        self, group: str, hosts: tuple[str, ...], is_added: bool, by: Caller, against: frozenset[str]
    ) -> Loaded:
        cluster = self.engine.cluster
        change = changed_members(cluster, group, hosts, is_added, by, against)
        loaded = await self._read({**cluster.group_changes, group: change})
        if loaded.errors:
            raise Refused(f"The configuration with this change has errors, such as {loaded.errors[0]}")
        if group not in loaded.policy.host_groups:
            raise Refused(f"{group}: No such host group")
        return loaded

    async def _read(self, changes: Mapping[str, MemberChange]) -> Loaded:
        try:
            hosts = frozenset(self.engine.cluster.hosts)
            loaded = await asyncio.to_thread(read_policy, self.settings, hosts, dict(changes))
            changed = lava_conf.changed(self.settings.directory, self.settings.extra)
            return replace(loaded, complaints=(*loaded.complaints, *changed))
        except ConfError as error:
            raise Refused(str(error)) from error

    async def _take(self, loaded: Loaded, command: Reconfigure | ChangeHostGroup) -> None:
        """Put the files into force as they were read."""
        await self._apply(loaded, command)
        self._loaded, self._state, self.problem = loaded, loaded.held, ""
        await asyncio.to_thread(_keep, self.settings, loaded)
        log_warnings(loaded)
        log.info("configuration=applied files=%d warnings=%d", len(loaded.files), len(loaded.warnings))

    async def _apply(self, loaded: Loaded, command: Reconfigure | ChangeHostGroup) -> None:
        await self.engine.execute(command)
        self.admit()
        self.applied_at = self.engine.clock()
        await asyncio.to_thread(self.installation.take, loaded)
        self.on_applied(loaded)

    async def keep_to_the_clock(self) -> None:
        """Call `follow_clock` for ever; a defect there is logged."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.follow_clock()
            except Exception:
                log.exception("configuration=not_changed")

    async def follow_clock(self) -> None:
        """Put the files into force as they count now, if a time condition in them has changed.

        They count as they were read: a file that was edited since waits for ``badmin reconfig``.
        """
        state = self._loaded.state(self.engine.clock())
        if state == self._state:
            return
        async with self._turn:
            variant = self._loaded.variants.get(state)
            if variant is None:
                self._state = state
                log.error("configuration=not_changed reason='the files have more time conditions than are prepared'")
                return
            await self._apply(variant, Reconfigure(variant.policy))
            self._state = state  # not before: what could not be applied is tried again
            log.info("configuration=changed_by_the_clock conditions=%s", "".join("01"[one] for one in state))


def _reply(loaded: Loaded) -> pb.ConfigureReply:
    reply = pb.ConfigureReply(files=loaded.files)
    for complaint in loaded.complaints:
        reply.complaints.add(file=complaint.file, line=complaint.line, text=complaint.text, fatal=complaint.is_fatal)
    for entry in loaded.entries:
        reply.entries.add(file=entry.file, line=entry.line, name=entry.name, fate=entry.fate.value, note=entry.note)
    return reply
