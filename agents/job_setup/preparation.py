"""Preparation of a job from the master's order: programs, files, limits and environment, packed once for all elements.

An array's elements on the same hosts differ only in their index, which the order does not hold, so one prepared setup
serves them all. Job scripts are written once per job, readable by their user alone.
"""

import hashlib
import itertools
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.containers.settings import ContainerSettings
from agents.job_setup.commands import eexec, file_copies
from agents.job_setup.commands.actions import controls_of, warning_of
from agents.job_setup.commands.checkpoints import CheckpointSettings, setup_of
from agents.job_setup.environment import HostFiles, OwnFiles, put_lists, set_by_lava, with_submitted
from agents.job_setup.host_context import HostContext
from agents.job_setup.programs import command_of, program_of
from agents.job_setup.slurm_job import program_arguments
from agents.job_setup.task_devices import Task, gpus_of, variables_of_task, visible
from agents.job_setup.task_files import can_be_private, files_of_tasks
from agents.job_setup.told.tell import needs_files
from agents.job_setup.users import Owner
from agents.mail.letters import MailSettings, has_report_apart
from agents.shepherd.ending import Heading
from agents.shepherd.messages import PIPES, TERMINAL, AroundJob, CheckpointSetup, Companion, GpuDaemon, JobSetup
from agents.shepherd_pool.pool import Setup
from protos import names
from protos.agents_pb2 import JobSpecBlob, Stage
from protos.common_pb2 import LAUNCH_EACH, LAUNCH_FIRST, HostShare
from protos.jobs_pb2 import JobSpec
from protos.wire import TASK_PATIENCE

SETUPS_KEPT = 256
UNUSED_SCRIPTS_KEPT = 64
NEW = ".new"
# Variables for the queue's commands of another user than the job's, and only as lava sets them: a variable of the job's
# user, such as LD_PRELOAD or LSF_ENVDIR, would make that user the other one.
SCHEDULERS = (b"LSB_", b"LS_SUBCWD", b"LS_EXECCWD", b"LSF_", b"LSFUSER", b"LAVA_")
OWN_POST_S = 3600.0  # of a job's own post-execution command where the site sets no limit: it holds the job's slots
TASK_PORTS = range(20000, 30000)  # below the ports that the kernel gives to clients
UMASK = 0o022  # of a submission that sets none
RLIMITS = ("cpu", "fsize", "data", "stack", "core", "nofile", "as", "rss", "memlock")
TOTALS = ("swap", "nproc", "threads")  # of all processes together: the kernel bounds them for each process or user


@dataclass(slots=True)
class Intervals:
    """Intervals of time, from the master's welcome."""

    terminate_s: float = 10.0
    usage_s: float = 15.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on a job's use of shared parts of this host, from the master's welcome."""

    processes_max: int = 0  # 0: no bound
    kept_output_mib: int = 8  # of a job whose output goes to no file
    kept_s: float = 3600.0  # after its end
    task_ports: range = TASK_PORTS  # for tasks that want ports
    patience_s: float = 300.0  # of a task or an interactive job without its client

    @staticmethod
    def of(settings: Mapping[str, str]) -> "Bounds":
        """Read the bounds from the welcome; a master of an earlier version sends none."""
        said = settings.get("LAVA_JOB_PROCESSES", "")
        return Bounds(
            int(said) if said.isdigit() else share_of_processes(),
            int(settings.get("LAVA_KEPT_OUTPUT") or 8),
            float(settings.get("CLEAN_PERIOD") or 3600),
            _ports_in(settings.get("LAVA_TASK_PORTS", "")),
            float(settings.get(TASK_PATIENCE) or 300),
        )


def _ports_in(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last) + 1) if first.isdigit() and last.isdigit() else TASK_PORTS


def share_of_processes() -> int:
    """Return a quarter of the machine's maximum of processes and threads: a fork bomb in a job leaves the rest."""
    limits = (Path("/proc/sys/kernel", name).read_text(encoding="ascii") for name in ("pid_max", "threads-max"))
    return min(map(int, limits)) // 4


@dataclass(frozen=True, slots=True)
class Prepared:
    """A setup, with the values the agent itself needs of it."""

    setup: Setup
    job: JobSetup
    blob: JobSpecBlob  # also keeps its identity from being reused while this is remembered


class Preparation:
    """Preparation of this host's jobs."""

    def __init__(self, host: HostContext, state: Path) -> None:
        self.host = host
        self.intervals = Intervals()
        self.bounds = Bounds.of({})
        self.containers = ContainerSettings()
        self.mail = MailSettings()
        self.checkpoints = CheckpointSettings()
        self.eexec = ""  # path of the site's program; empty for none
        self.cluster = ""
        self._lists = state / "hostfiles"
        self._files = HostFiles(self._lists, self._used)
        self._scripts = state / "scripts"
        self.state = state
        self._numbers = itertools.count(1)
        self._written: dict[int, set[Path]] = {}
        self._unused: OrderedDict[int, None] = OrderedDict()
        self._prepared: OrderedDict[tuple[object, ...], Prepared] = OrderedDict()

    def prepare(self, blob: JobSpecBlob, stage: Stage, owner: Owner, attempt: str = "") -> Prepared:
        """Prepare a job on this host. ``attempt`` names a resizable one, which has files of its own.

        Raises:
            OSError: a script or host file cannot be written.
        """
        intervals = (self.intervals.terminate_s, self.intervals.usage_s)
        key = (
            id(blob),
            owner,
            intervals,
            self.bounds,
            self.mail,
            self.eexec,
            self.checkpoints,
            attempt,
            _without_seals(stage),
        )
        self._unused.pop(blob.job, None)
        found = self._prepared.get(key)
        if found is not None:
            self._prepared.move_to_end(key)
            return found
        job = self._job(blob, stage, owner, OwnFiles(self._lists, attempt) if attempt else None)
        prepared = Prepared(Setup(next(self._numbers), job.pack()), job, blob)
        self._prepared[key] = prepared
        if len(self._prepared) > SETUPS_KEPT:
            self._prepared.popitem(last=False)
        return prepared

    def shared_directories(self) -> tuple[str, ...]:
        """Return the directories of lava's own that every job needs at their paths, in a container as well."""
        own = (str(self._lists), str(self._scripts), self.host.bin_dir, self.host.env_dir)
        return (*(path for path in own if path), os.path.dirname(self.host.socket))

    def adopt_scripts(self, is_held: Callable[[int], bool]) -> None:
        """Remove the scripts of jobs no longer held, after a restart."""
        for path in self._scripts.iterdir():
            job = path.name.partition(".")[0]
            if path.suffix != NEW and job.isdigit() and is_held(int(job)):
                self._written.setdefault(int(job), set()).add(path)
            else:
                path.unlink()

    def write_lists(self, stage: Stage, attempt: str) -> None:
        """Write the allocation lists of an attempt.

        Raises:
            OSError: a file cannot be written.
        """
        put_lists(stage.allocation, OwnFiles(self._lists, attempt))

    def drop_lists(self, attempt: str) -> None:
        """Remove the lists of an attempt of which nothing is left here."""
        for path in self._lists.glob(f"{attempt}.*"):
            path.unlink(missing_ok=True)

    def adopt_lists(self, attempts: Collection[str]) -> None:
        """Remove the lists of attempts no longer held, after a restart."""
        for path in self._lists.glob("*-*-*.*"):
            if path.name.partition(".")[0] not in attempts:
                path.unlink()

    def forget(self, job: int) -> None:
        """Forget a job without attempts here. Its script stays a while: an array's next element may be on its way."""
        if job not in self._written:
            return
        self._unused[job] = None
        self._unused.move_to_end(job)
        if len(self._unused) > UNUSED_SCRIPTS_KEPT:
            self._remove_scripts(self._unused.popitem(last=False)[0])

    def _remove_scripts(self, job: int) -> None:
        for path in self._written.pop(job):
            path.unlink(missing_ok=True)
        for key in [key for key, prepared in self._prepared.items() if prepared.blob.job == job]:
            del self._prepared[key]

    def _own_commands(self, spec: JobSpec, stage: Stage) -> tuple[str, str]:
        """Commands before and after the job that are its own or its profile's, with the copies of its files."""
        bin_dir, around = self.host.bin_dir, stage.around
        return (
            file_copies.before(bin_dir, spec.file_copies, spec.pre_exec or around.job_pre_exec),
            file_copies.after(bin_dir, spec.file_copies, spec.post_exec or around.job_post_exec),
        )

    def _job(self, blob: JobSpecBlob, stage: Stage, owner: Owner, own: OwnFiles | None) -> JobSetup:
        spec, lead = blob.spec, stage.allocation[0].host == self.host.host
        script = self._script(blob, owner) if spec.is_script else ""
        by_lava = set_by_lava(blob, stage, owner.home, script, self.host, self._files, own)
        first = any(role.launch == LAUNCH_FIRST for role in spec.roles) or not spec.roles
        command = next((role.command for role in spec.roles if role.launch == LAUNCH_FIRST and role.command), "")
        line, spooled = command or command_of(spec), "" if command else script
        of_tasks = spec.HasField("tasks")
        is_first = lead and first and not of_tasks
        arguments = program_arguments(spec) if spooled else ()
        program = program_of(line, spec.shell, spooled, stage.job_starter, arguments) if is_first else None
        is_slurm = spec.HasField("slurm")
        for_eexec = self._spooled(blob, spec.esub_output, owner, 0o400) if self.eexec and spec.esub_output else ""
        pre_exec, post_exec = self._own_commands(spec, stage)
        return JobSetup(
            user=owner.name,
            uid=owner.uid,
            gid=owner.gid,
            groups=owner.groups,
            home=owner.home,
            environment=with_submitted(blob, by_lava, own is not None),
            name=spec.name or names.of_command(spec.command),
            cwd=for_job(spec.cwd, blob, stage),
            program=program,
            companions=() if of_tasks else _companions(blob, stage, self.host, script),
            input=self._spooled(blob, spec.input_data, owner, 0o400) if spec.input_spooled else spec.input,
            output=spec.output,
            error=spec.error,
            output_overwrite=spec.output_overwrite,
            error_overwrite=spec.error_overwrite,
            output_dir=for_job(spec.output_dir, blob, stage),
            umask=spec.umask_plus_one - 1 if spec.umask_plus_one else UMASK,
            nice=stage.nice,
            rlimits=tuple((limit.name, limit.soft) for limit in spec.rlimits if limit.name in RLIMITS),
            memory_limit_mib=spec.memory_limit_mib,
            run_limit_s=stage.run_limit_s,
            deadline=stage.deadline,
            terminate_interval_s=self.intervals.terminate_s,
            usage_interval_s=self.intervals.usage_s,
            pre_exec=eexec.before(self.eexec, for_eexec, pre_exec) if lead else "",
            post_exec=eexec.after(self.eexec, for_eexec, post_exec) if lead else "",
            report=tuple(self.heading(blob, stage, owner.home))
            if lead and spec.output and not (of_tasks or is_slurm or (self.mail.program and has_report_apart(spec)))
            else None,
            cpus=_bound_to(stage.allocation, self.host.host),
            nodes=_memory_nodes(stage.allocation, self.host.host),
            memory_policy=_memory_policy(stage.allocation, self.host.host),
            gpu_daemon=self._gpu_daemon(stage),
            processes_max=self.bounds.processes_max,
            denied_devices=self._devices(stage, own=False),
            own_devices=self._devices(stage, own=True),
            kept_output_mib=self.bounds.kept_output_mib,
            controls=controls_of(spec, stage, lead),
            lease_s=stage.lease_s,
            is_wide=lead and not of_tasks and (len(stage.allocation) > 1 or spec.resizable),
            role_names=tuple(role.name for role in spec.roles) if of_tasks else (),
            is_lead=lead,
            has_gpus=lead and not (of_tasks or is_slurm) and bool(spec.output) and bool(gpus_of(stage, self.host.host)),
            private_files=str(files_of_tasks(self.state)) if self.shows_files(blob) else "",
            notices=self.host.notices,
            warning_time_s=stage.warning_time_s,
            warning_action=warning_of(spec, stage, lead, is_first),
            slurm_base=spec.slurm.array_base if is_slurm else -1,
            interactive=_streams_of(spec),
            patience_s=self.bounds.patience_s,
            around=_around(spec, stage, owner, lead, by_lava),
            totals=tuple((limit.name, limit.soft) for limit in spec.rlimits if limit.name in TOTALS),
            checkpoint=self._checkpoint(spec) if is_first else CheckpointSetup(),
            needs_cwd=not of_tasks or not all(role.cwd for role in spec.roles),
        )

    def _checkpoint(self, spec: JobSpec) -> CheckpointSetup:
        if not spec.HasField("checkpoint"):
            return CheckpointSetup()
        return setup_of(spec.checkpoint, self.checkpoints, self.host.bin_dir)

    def shows_files(self, blob: JobSpecBlob) -> bool:
        """Return True for a job whose tasks see files at fixed paths and have names here."""
        return needs_files(blob) and can_be_private()

    def _gpu_daemon(self, stage: Stage) -> GpuDaemon | None:
        gpus, vendor = gpus_of(stage, self.host.host), self.host.gpu_vendor
        if not stage.gpu.mps or not gpus or vendor.daemon is None:
            return None
        return GpuDaemon(
            self.host.gpu_daemon,
            str(self.state / vendor.daemon.folder),
            visible(gpus, stage, self.host),
            vendor.daemon.label,
            vendor.visible,
            vendor.daemon.arguments,
            vendor.daemon.directories,
        )

    def _devices(self, stage: Stage, own: bool) -> tuple[str, ...]:
        gpus = gpus_of(stage, self.host.host)
        return tuple(device for gpu, device in enumerate(self.host.gpu_devices) if (gpu in gpus) is own)

    def _used(self) -> set[str]:
        """Return the host files that prepared jobs name."""
        variables = (
            b"LSB_DJOB_HOSTFILE",
            b"LSB_DJOB_RANKFILE",
            b"OMPI_MCA_orte_default_hostfile",
            b"LSB_AFFINITY_HOSTFILE",
        )
        environments = [one.job.environment for one in self._prepared.values()]
        return {os.fsdecode(found[name]) for found in environments for name in variables if name in found}

    def _script(self, blob: JobSpecBlob, owner: Owner) -> str:
        return self._spooled(blob, command_of(blob.spec).encode("utf-8", "surrogateescape"), owner, 0o500)

    def _spooled(self, blob: JobSpecBlob, content: bytes, owner: Owner, mode: int) -> str:
        """Write a file that travelled with the job, for its user alone; return its path."""
        path = self._scripts / f"{blob.job}.{hashlib.sha256(content).hexdigest()[:16]}"
        if path not in self._written.setdefault(blob.job, set()):
            temporary = path.with_name(path.name + NEW)
            temporary.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with open(os.open(temporary, flags, mode), "wb") as file:
                file.write(content)
                if os.geteuid() == 0:
                    os.fchown(file.fileno(), owner.uid, owner.gid)
            os.replace(temporary, path)
            self._written[blob.job].add(path)
        return str(path)

    def heading(self, blob: JobSpecBlob, stage: Stage, home: str) -> Heading:
        """Return what the job's report says that its end does not change."""
        spec = blob.spec
        return Heading(
            sender=f"{_administrator()}@{self.host.host}",
            cluster=blob.cluster or self.cluster,
            user=blob.user,
            submit_host=spec.submit_host,
            submit_time=blob.submit_time,
            hosts=printed(stage.allocation),
            queue=stage.queue or blob.queue,
            home=home,
            command=spec.command,
            memory_requested_mib=sum(share.memory_mib for share in stage.allocation),
            error_file=bool(spec.error),
        )


def _without_seals(stage: Stage) -> bytes:
    """Return what a stage order says of the job: its seals are over the attempt's key, and so differ in each order."""
    bare = Stage()
    bare.CopyFrom(stage)
    bare.seal = bare.allocation_seal = b""
    return bare.SerializeToString(deterministic=True)


def _around(spec: JobSpec, stage: Stage, owner: Owner, is_lead: bool, by_lava: Collection[bytes]) -> AroundJob:
    """Return the queue's commands around a job on this host, with their user."""
    around, other = stage.around, owner.other
    found = AroundJob(
        pre=around.pre_exec if is_lead else "",
        post=around.post_exec if is_lead else "",
        host_pre=around.host_pre_exec,
        host_post=around.host_post_exec,
        profile_host_pre=around.profile_host_pre_exec,
        profile_host_post=around.profile_host_post_exec,
        pre_limit_s=around.pre_limit_s,
        post_limit_s=around.post_limit_s,
        own_post_limit_s=around.post_limit_s or OWN_POST_S,
        includes_post=around.includes_post or file_copies.come_back(spec.file_copies),
        requeued_codes=tuple(around.requeued_codes),
        success_codes=tuple(around.success_codes),
        requeues_max=around.requeues_max_plus_one - 1,
    )
    if other is None:
        return found
    found = found._replace(user=other.name, uid=other.uid, gid=other.gid, groups=other.groups, home=other.home)
    return found._replace(variables=tuple(name for name in by_lava if name.startswith(SCHEDULERS)))


def _streams_of(spec: JobSpec) -> str:
    """Return the kind of streams that an interactive job has with its client; empty for a batch job."""
    return spec.interactive and (PIPES if spec.interactive == PIPES else TERMINAL)


def printed(allocation: Sequence[HostShare]) -> tuple[str, ...]:
    """Format hosts as a report names them: "4*n001", "n002"."""
    return tuple(f"{share.slots}*{share.host}" if share.slots > 1 else share.host for share in allocation)


def _administrator() -> str:
    return "root" if os.geteuid() == 0 else os.environ.get("USER", "lava")


def for_job(path: str, blob: JobSpecBlob, stage: Stage) -> str:
    """Expand the patterns that are the same for all elements in a directory; %J and %I stay."""
    if "%" not in path:
        return path
    known = {
        "%JG": blob.spec.job_group,
        "%EJ": "%J",
        "%EI": "%I",
        "%P": blob.spec.project,
        "%U": blob.user,
        "%G": blob.spec.user_group,
        "%H": stage.allocation[0].host,
    }
    for pattern, value in known.items():
        path = path.replace(pattern, value)
    return path


def _bound_to(allocation: Sequence[HostShare], host: str) -> tuple[int, ...]:
    """Return the CPUs of all tasks of this host: those that the job's processes may use together."""
    mine = [task for share in allocation if share.host == host for task in share.cpus]
    return tuple(sorted({cpu for task in mine for cpu in task.cpus}))


def _memory_nodes(allocation: Sequence[HostShare], host: str) -> tuple[int, ...]:
    mine = [task for share in allocation if share.host == host for task in share.cpus]
    return tuple(sorted({node for task in mine for node in task.nodes}))


def _memory_policy(allocation: Sequence[HostShare], host: str) -> str:
    """Return membind= of affinity[...], if its nodes are known."""
    tasks = [task for share in allocation if share.host == host for task in share.cpus]
    return next((task.memory for task in tasks if task.nodes), "")


def _companions(blob: JobSpecBlob, stage: Stage, host: HostContext, script: str) -> tuple[Companion, ...]:
    """Return the tasks of this host whose role has a command of its own: one for each task."""
    found: list[Companion] = []
    allocation, number = stage.allocation, 0
    total = sum(sum(share.tasks_by_role) for share in allocation)
    for at, role in enumerate(blob.spec.roles):
        in_role = 0
        size = sum(_tasks(share, at) for share in allocation)
        for share in allocation:
            here = _tasks(share, at)
            for one in range(here):
                if role.launch == LAUNCH_EACH and share.host == host.host:
                    line, spooled = role.command or command_of(blob.spec), "" if role.command else script
                    program = program_of(line, blob.spec.shell, spooled, stage.job_starter)
                    variables = _task_variables(number, total, role.name, in_role, size)
                    devices = variables_of_task(Task(at, one, here), stage, host)
                    variables |= {os.fsencode(name): os.fsencode(value) for name, value in devices.items()}
                    found.append(Companion(number, program, variables))
                number, in_role = number + 1, in_role + 1
    return tuple(found)


def _tasks(share: HostShare, role: int) -> int:
    return share.tasks_by_role[role] if role < len(share.tasks_by_role) else 0


def _task_variables(number: int, total: int, role: str, in_role: int, size: int) -> dict[bytes, bytes]:
    return {
        b"LAVA_TASK_INDEX": b"%d" % number,
        b"LAVA_TASK_COUNT": b"%d" % total,
        b"LAVA_ROLE": role.encode(),
        b"LAVA_ROLE_INDEX": b"%d" % in_role,
        b"LAVA_ROLE_COUNT": b"%d" % size,
    }
