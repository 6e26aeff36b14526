"""Configuration files of a running master: read at start, checked (ckconfig), applied (reconfig).

The files are read in a thread: a directory service or an egroup program may be slow. If there are errors, the present
configuration stays in force.
"""

import asyncio
import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from lavad.api.cluster.installation import Installation, foreign_files
from lavad.config.load import Loaded, find_directory, load
from lavad.core.commands import Reconfigure
from lavad.core.model.reasons import Refused
from lavad.engine import Engine
from lavad.settings import Settings
from protos import cluster_pb2 as pb
from protos.conffile import ConfError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lavad.api.agents import AgentService
    from lavad.api.jobs.job_service import JobService

log = logging.getLogger(__name__)

LOOK_S = 1.0


def read_policy(settings: Settings, hosts: frozenset[str] = frozenset()) -> Loaded:
    """Read the site's policy: the LSF files over the settings of lava.conf, with ``hosts`` as joined hosts. Blocks."""
    directory = find_directory(settings.directory, settings.lsf_directory, os.environ)
    loaded = load(directory, settings.policy(), settings.cluster, joined=hosts)
    return replace(loaded, complaints=(*loaded.complaints, *foreign_files(settings, loaded, directory)))


def policy_at_start(settings: Settings) -> Loaded:
    """Read the policy for a master that starts: errors are fatal, so that it never runs with a partial policy.

    Raises:
        ConfError: every fatal complaint, a line each.
    """
    loaded = read_policy(settings)
    if loaded.errors:
        raise ConfError("\n".join(map(str, loaded.errors)))
    _log_warnings(loaded)
    return loaded


def _log_warnings(loaded: Loaded) -> None:
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
    ) -> None:
        self.engine = engine
        self._loaded = loaded  # in force, with its variants for other times
        self._state = loaded.held
        self.installation = installation
        self.applied_at = 0.0  # 0: not since the start
        self.settings = settings  # with only the administrators of lava.conf
        self.services = services
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
            try:
                hosts = frozenset(self.engine.cluster.hosts)
                loaded = await asyncio.to_thread(read_policy, self.settings, hosts)
            except ConfError as error:
                raise Refused(str(error)) from error
            reply = _reply(loaded)
            if apply and not loaded.errors:
                await self._apply(loaded)
                self._loaded, self._state = loaded, loaded.held
                reply.applied = True
                _log_warnings(loaded)
                log.info("configuration=applied files=%d warnings=%d", len(loaded.files), len(loaded.warnings))
            return reply

    async def _apply(self, loaded: Loaded) -> None:
        await self.engine.execute(Reconfigure(loaded.policy))
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
            await self._apply(variant)
            self._state = state  # not before: what could not be applied is tried again
            log.info("configuration=changed_by_the_clock conditions=%s", "".join("01"[one] for one in state))


def _reply(loaded: Loaded) -> pb.ConfigureReply:
    reply = pb.ConfigureReply(files=loaded.files)
    for complaint in loaded.complaints:
        reply.complaints.add(file=complaint.file, line=complaint.line, text=complaint.text, fatal=complaint.is_fatal)
    for entry in loaded.entries:
        reply.entries.add(file=entry.file, line=entry.line, name=entry.name, fate=entry.fate.value, note=entry.note)
    return reply
