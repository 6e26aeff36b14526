"""``bjobs -l`` and ``-UF``: one job as paragraphs.

Invariants: -l breaks paragraphs at 80 columns and uses OpenLava's wording (Processors), -UF leaves them whole and uses
LSF's (Task(s), Slot(s)); a command or name of the user's cannot break a line.
"""

from lavactl.jobrefs import key_text
from lavactl.submit.hang_rule import hang_text
from lavactl.tasks.task_table import role_text, task_lines
from lavactl.text.exits import exit_sentence
from lavactl.text.progress import progress_lines
from lavactl.text.render import MISSING, clean, clean_script, long_time, short_time, wrap
from lavactl.text.roles import command_of, gpu_text
from lavactl.text.units import number_text
from lavactl.views.job_table import STATES, host_list, reason_text
from lavactl.views.thresholds import threshold_lines
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    Job = messages.JobRecord

SEPARATOR = "-" * 78
LIMITS = {
    "cpu": "CPULIMIT", "fsize": "FILELIMIT", "data": "DATALIMIT", "stack": "STACKLIMIT", "core": "CORELIMIT",
    "swap": "SWAPLIMIT", "nproc": "PROCESSLIMIT", "threads": "THREADLIMIT",
}  # fmt: skip
DETAIL = " " * 21
ENDED = (messages.DONE, messages.EXIT)
SUSPENDED = (messages.USUSP, messages.SSUSP)
HOLDING = (messages.STAGING, messages.RUN, messages.USUSP, messages.SSUSP, messages.UNKWN)
# Post-execution commands of an ended job that have ended, too.
POSTS = {2: "Post job process done successfully", 3: "Post job process failed"}
IN_ORDER = "in order"  # start reason of a job dispatched in normal order: not shown


def long_text(job: "Job", unformatted: bool, now: float, home: str) -> str:
    """A whole job, preceded by a blank line.

    Args:
        home: the submitter's home directory on this host, or empty.
    """
    fold = str if unformatted else wrap
    parts = ["", fold(head(job))]
    parts.append(fold(f"{long_time(job.submit_time)}: {submitted(job, unformatted, job.exec_home or home)};"))
    parts += limits(job)
    if job.start_time:
        parts.append(fold(f"{long_time(job.start_time)}: {started(job, unformatted)};"))
    if job.state in ENDED:
        parts += [fold(line) for line in ended(job)]
    parts += progress_lines(job, now)
    parts += usage(job, unformatted)
    parts += task_lines(job)
    parts += [fold(line) for line in warnings(job)]
    parts += reasons(job)
    parts += external_messages(job)
    parts += scheduling(job) + requirement(job)
    return "\n".join(parts) + "\n"


def head(job: "Job", *, state: bool = True) -> str:
    """First paragraph, also of bhist: job id, name, user, project, queue, command."""
    spec = job.spec
    fields = [
        f"Job <{key_text(job.job, job.index)}>",
        f"Job Name <{clean(job.name)}>" if spec.name else "",
        f"User <{job.user}>",
        f"Project <{clean(job.project or 'default')}>",
        f"User Group <{clean(spec.user_group)}>" if spec.user_group else "",
        f"Application <{clean(spec.application)}>" if spec.application else "",
        f"Service Class <{clean(spec.service_class)}>" if spec.service_class else "",
        f"Job Group <{clean(spec.job_group)}>" if spec.job_group else "",
        f"Status <{STATES[job.state]}>" if state else "",
        f"Queue <{job.queue}>" if state else "",
        INTERACTIVE.get(spec.interactive, ""),
        f"Reservation <{clean(spec.reservation)}>" if spec.reservation else "",
        f"Job Priority <{job.priority}>" if job.priority else "",
        absolute_text(spec.absolute_priority),
        f"Command <{clean_script(command_of(spec))}>",
        f"Share group charged <{job.share_account}>" if job.share_account else "",
        f"Job Description <{clean(spec.description)}>" if spec.description else "",
    ]
    return ", ".join(filter(None, fields))


def absolute_text(given: str) -> str:
    """The value that an administrator has given the job, or has added to its own (bmod -aps)."""
    kind, _, value = given.partition("=")
    titles = {"system": "System Absolute Priority", "admin": "Admin factor value"}
    return f"{titles[kind]} <{value}>" if kind in titles else ""


INTERACTIVE = {
    "pipes": "Interactive mode",
    "terminal": "Interactive pseudo-terminal mode",
    "shell": "Interactive pseudo-terminal shell mode",
}


def submitted(job: "Job", unformatted: bool, home: str, *, to_queue: bool = False) -> str:
    """Paragraph about the submission, without its date: host, directories, files and options."""
    spec = job.spec
    fields = [
        f"Submitted from host <{job.from_host}>",
        f"to Queue <{job.queue}>" if to_queue else "",
        f"CWD <{under_home(spec.cwd or spec.submit_cwd, home)}>",
        *(f"{title} <{clean(value)}>" for title, value in files(spec) if value),
        "Re-runnable" if spec.rerunnable else "",
        f"Requeue Exit Values <{clean(spec.requeue_exit_values)}>" if spec.requeue_exit_values else "",
        f"Success Exit Values <{clean(spec.success_exit_values)}>" if spec.success_exit_values else "",
        "Autoresizable" if spec.resizable else "",
        f"Resize Notification Command <{clean(spec.resize_notify)}>" if spec.resize_notify else "",
        f"Mail <{clean(spec.mail_user)}>" if spec.mail_user else "",
        notify_text(spec),
        "Exclusive Execution" if spec.exclusive else "",
        f"Hang Detection <{hang_text(spec.hang)}>" if spec.HasField("hang") else "",
        slots(job, unformatted),
        role_text(spec),
        f"Requested Resources <{clean(spec.requirement_text)}>" if spec.requirement_text else "",
        f"Requested GPU <{clean(gpu_text(spec))}>" if gpu_text(spec) else "",
        f"Dependency Condition <{clean(spec.dependency)}>" if spec.dependency else "",
        "Orphan Termination" if spec.ends_orphan else "",
        specified_hosts(spec),
        f"Specified Start Time <{short_time(spec.begin_time)}>" if spec.begin_time else "",
        f"Specified Termination Time <{short_time(spec.terminate_time)}>" if spec.terminate_time else "",
        *warning(spec),
        f"Migration threshold <{spec.migration_min_plus_one - 1} min>" if spec.migration_min_plus_one else "",
        *checkpoints(job),
        f"Login Shell <{clean(spec.shell)}>" if spec.shell else "",
        f"Pre-execute Command <{clean(spec.pre_exec)}>" if spec.pre_exec else "",
        f"Copy Files <{clean('; '.join(spec.file_copies))}>" if spec.file_copies else "",
        f"Post-execute Command <{clean(spec.post_exec)}>" if spec.post_exec else "",
    ]
    return ", ".join(filter(None, fields))


def notify_text(spec: messages.JobSpec) -> str:
    """Events that the job's user has a mail for: -B, -N, -Ne, -notify."""
    events = spec.mail_events.split()
    begins = "begins" if spec.mail_begin or "start" in events else ""
    fails = spec.mail_failure or "exit" in events
    ends = "ends" if spec.mail_end or ("done" in events and fails) else ""
    if not ends:
        ends = "fails" if fails else "is done" if "done" in events else ""
    return f"Notify when job {'/'.join(filter(None, (begins, ends)))}" if begins or ends else ""


def warning(spec: messages.JobSpec) -> list[str]:
    """Warning time and action of the job (-wt, -wa)."""
    time = f"Job Warning Time <{number_text(spec.warning_time_s)} seconds>" if spec.warning_time_s else ""
    return [time, f"Job Warning Action <{clean(spec.warning_action)}>" if spec.warning_action else ""]


def checkpoints(job: "Job") -> list[str]:
    """Periods, directory and method of the job's checkpoints (-k)."""
    one = job.spec.checkpoint
    if not one.directory:
        return []
    return [
        f"Initial checkpoint period {one.first_s / 60:.0f} min." if one.first_s else "",
        f"Checkpoint period {one.period_s / 60:.0f} min." if one.period_s else "",
        f"Checkpoint directory <{clean(one.directory)}/{key_text(job.job, job.index)}>",
        f"Checkpoint method <{clean(one.method)}>" if one.method else "",
    ]


def files(spec: messages.JobSpec) -> list[tuple[str, str]]:
    """Files of the job with their titles."""
    overwrite = " (overwrite)"
    return [
        ("Input File", spec.input),
        (f"Output File{overwrite if spec.output_overwrite else ''}", spec.output),
        (f"Error File{overwrite if spec.error_overwrite else ''}", spec.error),
        ("Output Directory", spec.output_dir),
    ]


def under_home(path: str, home: str) -> str:
    """Path of a directory, relative to $HOME if it is below it."""
    if home and home != "/" and (path == home or path.startswith(home + "/")):
        path = "$HOME" + path[len(home) :]
    return clean(path)


def slots(job: "Job", unformatted: bool) -> str:
    """Number of slots requested; empty for a single one in the wrapped form."""
    low, high = job.slots_min or 1, job.slots_max or job.slots_min or 1
    number = str(low) if high == low else f"{low}-{high}"
    if unformatted:
        return f"{number} Task(s)"
    return f"{number} Processors Requested" if high > 1 else ""


def started(job: "Job", unformatted: bool) -> str:
    """Hosts on which the job started, without the date."""
    count = sum(share.slots for share in job.hosts)
    if unformatted:
        where = " ".join(f"<{host}>" for host in host_list(job, True))
        text = f"Started {count} Task(s) on Host(s) {where}, Allocated {count} Slot(s) on Host(s) {where}"
    elif count > 1:
        text = f"Started on {count} Hosts/Processors " + " ".join(f"<{host}>" for host in host_list(job, False))
    else:
        text = "Started on " + " ".join(f"<{host}>" for host in host_list(job, False))
    if job.exec_home:
        text += f", Execution Home <{clean(job.exec_home)}>"
    if job.exec_cwd:
        text += f", Execution CWD <{clean(job.exec_cwd)}>"
    if job.start_reason not in ("", IN_ORDER):
        text += f", Start Reason <{clean(job.start_reason)}>"
    return text


def ended(job: "Job") -> list[str]:
    """End of the job: exit status, CPU time and exit reason."""
    date = long_time(job.end_time)
    if not job.start_time:
        how = exit_sentence(job.exit_status).rstrip(".") if job.exit_status else "Exited"
        lines = [f"{date}: {how}; the job ended before it started."]
    else:
        cpu = f"The CPU time used is {job.usage.cpu_s:.1f} seconds."
        status = 0 if job.state == messages.DONE else job.exit_status  # another code may mean success
        lines = [f"{date}: {exit_sentence(status)} {cpu}"]
    if job.exit_reason:
        lines.append(f"{date}: Completed <{'done' if job.state == messages.DONE else 'exit'}>; {reason(job)}")
    if job.post in POSTS:
        lines.append(f"{long_time(job.posted_at)}: {POSTS[job.post]};")
    return lines


def reason(job: "Job") -> str:
    """Exit reason as a sentence."""
    text = clean(job.exit_reason)
    return text if text.endswith(".") else f"{text}."


def limits(job: "Job") -> list[str]:
    """A block for each limit of the job."""
    spec = job.spec
    lines = []
    if spec.run_limit_s:
        lines += ["", " RUNLIMIT", f" {spec.run_limit_s / 60:.1f} min"]
    if spec.runtime_estimate_s:
        lines += ["", " RUNTIME", f" {spec.runtime_estimate_s / 60:.1f} min"]
    for one in spec.rlimits:
        lines += ["", f" {LIMITS.get(one.name) or clean(one.name)}", f" {amount(one.name, one.soft)}"]
    if spec.memory_limit_mib:
        lines += ["", " MEMLIMIT", f"    {memory_limit(spec.memory_limit_mib)}"]
    return [*lines, ""] if lines else []


def amount(name: str, soft: int) -> str:
    """A limit with its unit: minutes of CPU time, a bare number of processes or threads, else KiB."""
    if name in ("nproc", "threads"):
        return str(soft)
    return f"{soft / 60:.1f} min" if name == "cpu" else f"{soft >> 10} K"


def memory_limit(mib: int) -> str:
    """``4 G``, ``1.5 G``, ``500 M``."""
    return f"{mib / 1024:.1f}".removesuffix(".0") + " G" if mib >= 1024 else f"{mib} M"


def usage(job: "Job", unformatted: bool = False) -> list[str]:
    """Resource usage: a paragraph on the newest report of a job that runs, one line for -UF; peak memory always."""
    if not job.HasField("usage"):
        return []
    total = job.usage
    lines = []
    if job.state in HOLDING and total.collected_at:
        lines.append(f"{long_time(total.collected_at)}: Resource usage collected.")
        lines.append(f"{DETAIL}The CPU time used is {total.cpu_s:.0f} seconds.")
        lines += usage_lines(total) if len(job.usage_by_host) < 2 else usage_by_host(job)
        if unformatted:
            rest = "; ".join(line.strip().rstrip(".").replace(";  ", "; ") for line in lines[1:])
            lines = [f"{lines[0]} {rest};"]
    if total.memory_mib_max:
        mean = f"{total.memory_mib_mean:.0f} Mbytes" if total.memory_mib_mean else "-"
        lines += ["", " MEMORY USAGE:", f" MAX MEM: {total.memory_mib_max} Mbytes;  AVG MEM: {mean}"]
    return lines


def warnings(job: "Job") -> list[str]:
    """Hang of the job with the stacks that were saved, hosts without a process of it, and what its GPUs show."""
    lines = []
    if job.hangs_since:
        what = f"no output, no progress and no use of CPU, network or GPU for {job.inactive_s:.0f} seconds"
        lines.append(f"{long_time(job.hangs_since)}: The job hangs: {what};")
        lines += [f"{DETAIL}Stacks of its processes: {clean(one)};" for one in job.stacks]
    for host in job.unused_hosts:
        lines.append(f"{long_time(host.since)}: Host <{clean(host.host)}> has no process of the job since then;")
    return lines + [f"{long_time(one.time)}: Warning: {clean(one.text)};" for one in job.warnings]


def specified_hosts(spec: messages.JobSpec) -> str:
    """Hosts of -m, or the host file that names them."""
    if spec.HasField("host_file"):
        return f"Host file <{clean(spec.host_file.path)}>"
    return "Specified Hosts " + ", ".join(f"<{clean(host)}>" for host in spec.hosts) if spec.hosts else ""


def host_file_text(job: "Job") -> str:
    """-hostfile: the lines of the job's host file; empty without one."""
    file = job.spec.host_file
    rows = [f" {clean(host):<19} {slots}\n" for host, slots in zip(file.hosts, file.slots, strict=True)]
    return "".join(["\n USER-SPECIFIED HOST FILE:\n HOST                SLOTS\n", *rows]) if rows else ""


def external_messages(job: "Job") -> list[str]:
    """Messages that were posted to the job (bpost)."""
    if not job.messages:
        return []
    lines = [
        "",
        " EXTERNAL MESSAGES:",
        " MSG_ID FROM       POST_TIME      MESSAGE                             ATTACHMENT",
    ]
    for one in job.messages:
        row = f" {one.number:<6} {clean(one.user):<10} {short_time(one.time):<14} {clean(one.text):<35} "
        lines.append(row + ("Y" if one.size else "N"))
    return lines


def usage_lines(part: messages.Usage) -> list[str]:
    """Memory and processes of one host."""
    lines = [f"{DETAIL}MEM: {part.memory_mib} Mbytes;  SWAP: {part.swap_mib} Mbytes"]
    pids = " ".join(map(str, part.pids))
    groups = " ".join(map(str, part.process_groups))
    if groups:
        lines.append(f"{DETAIL}PGID: {groups};  PIDs: {pids}")
    elif pids:
        lines.append(f"{DETAIL}PIDs: {pids}")
    return lines


def usage_by_host(job: "Job") -> list[str]:
    """Memory and processes of each host."""
    lines = []
    for part in job.usage_by_host:
        lines.append(f"{DETAIL}HOST: {part.host};  CPU_TIME: {part.cpu_s:.0f} seconds")
        lines += usage_lines(part)
    return lines


def reasons(job: "Job") -> list[str]:
    """Pending or suspending reasons."""
    if job.state in SUSPENDED and job.suspend_reason:
        return ["", " SUSPENDING REASONS:", f" {clean(job.suspend_reason)};"]
    if not job.pending_reasons:
        return []
    lines = ["", " PENDING REASONS:"]
    for one in job.pending_reasons:
        lines.append(f" {reason_text(one)}")
        if one.advice:
            lines.append(f"   ({clean(one.advice)})")
    return lines + outlook(job)


def outlook(job: "Job") -> list[str]:
    """Queue position, estimated start, and single changes that would let the job start now."""
    if not job.HasField("outlook"):
        return []
    seen = job.outlook
    lines = ["", " OUTLOOK:"]
    if seen.is_hopeless:
        lines.append(" It will never start as it is: all hosts together, idle, do not have what it asks for;")
    elif seen.sureness:
        start = short_time(job.estimated_start) if job.estimated_start else "unknown"
        lines.append(f" Waiting jobs that go first: {seen.ahead};")
        lines.append(f" Estimated start: {start} ({clean(seen.sureness)});")
        if seen.reserved:
            lines.append(f" {reserved(job)} from then on;")
    when = "Could start" if seen.is_for_later else "Would start now"
    costs = [*seen.costs, *[""] * len(seen.remedies)]  # an older master sends no costs
    for command, cost in zip(seen.remedies, costs, strict=False):
        lines.append(f" {when} after: {clean(command)};")
        if cost:
            lines.append(f"   (it gives up {clean(cost)})")
    return lines


def reserved(job: "Job") -> str:
    """Slots and hosts reserved for the job."""
    slots = sum(share.slots for share in job.outlook.reserved)
    hosts = " ".join(f"<{share.slots}*{clean(share.host)}>" for share in job.outlook.reserved)
    return f"Reserved <{slots}> job slots on host(s) {hosts}"


def scheduling(job: "Job") -> list[str]:
    """Load thresholds that apply to the job: those of its queue, or the stricter ones of its hosts."""
    bounds = [(one.index, one.sched if one.has_sched else None, one.stop if one.has_stop else None)
              for one in job.load_bounds]  # fmt: skip
    return ["", " SCHEDULING PARAMETERS:", *threshold_lines(bounds)]


def requirement(job: "Job") -> list[str]:
    """Combined and effective resource requirement; the latter is ``-`` while the job is not placed."""
    combined = clean(job.effective_requirement or job.spec.requirement_text)
    if not combined:
        return []
    effective = combined if job.hosts else "-"
    return ["", " RESOURCE REQUIREMENT DETAILS:", f" Combined: {combined}", f" Effective: {effective}"]


AFFINITY_HEADER = f"""
 AFFINITY:
{"":21}{"CPU BINDING":37}MEMORY BINDING
{"":21}{"-" * 24:37}{"-" * 20}
 HOST                TYPE   LEVEL  EXCL   IDS             POL   NUMA SIZE
"""
POLICIES = {"localonly": "local", "localprefer": "pref"}


def affinity_text(job: "Job") -> str:
    """Part of -l -aff: the processors of each task, by the numbers that the host gives them; empty for unbound jobs."""
    import re

    text = job.effective_requirement or job.spec.requirement_text

    def part(pattern: str) -> str:
        found = re.search(rf"affinity\[.*?{pattern}", text)
        return found[1] if found else MISSING

    unit, level, exclusive = part(r"\b(thread|core|socket|numa)\b"), part(r"cpubind=(\w+)"), part(r"exclusive=\(?(\w+)")
    policy = POLICIES.get(part(r"membind=(\w+)"), MISSING)
    rows = [
        f" {share.host:<19} {unit:<6} {level:<6} {exclusive:<6} {','.join(map(str, task.cpus)):<15} {policy:<5} "
        f"{MISSING:<4} {MISSING}\n"
        for share in job.hosts
        for task in share.cpus
    ]
    return AFFINITY_HEADER + "".join(rows) if rows else ""
