"""lsf.conf: NAME=VALUE settings of the whole installation. Most concern LSF's own daemons."""

import re

from lavad.config.grammar import Document
from lavad.config.ignored.conf import IGNORED
from lavad.config.site import Fields, Honoured, Ignored, Site, Table, cell_of, missed, sets
from lavad.config.values import Wrong, account_name, gpu_requirement, switch

_UNIT_HOLDS = (
    "unit of sizes without one, KB to ZB: in limits (else KB), and in requirements, load thresholds, `gmem` "
    "and lsb.resources (else MB)"
)
_UNIT = re.compile(r"([KMGTPEZ])B?\Z", re.IGNORECASE)


def _unit(text: str) -> str:
    found = _UNIT.match(text)
    if not found:
        raise Wrong("expected KB, MB, GB, TB, PB, EB or ZB")
    return found[1].upper()


def _by_commands(about: str) -> Honoured:
    """Declare a parameter that is read as written: by the commands on each host, or by what writes LSF's logs."""
    return Honoured(lambda text, site: {}, about)


def _by_agents(about: str) -> Honoured:
    """Declare a parameter that the agents of all hosts read as written."""
    return Honoured(lambda text, site: {}, about)


_PORTS = Ignored("LAVA_LISTEN in lava.conf; agents need no fixed port")
_DEBUG = Ignored("LSF's own logs")
_PLACES = Ignored("lava's programs and state have places of their own")
_QUERY = Ignored("queries never wait for the scheduler")
_GPU = Ignored("GPUs are always found and isolated")
CONF: Table = {
    "LSF_CONFDIR": sets("confdir", str, "where lsf.shared and lsf.cluster.NAME are; beside lsf.conf"),
    "LSB_CONFDIR": sets("lsb_confdir", str, "where the lsb files are, or NAME/configdir with them; beside lsf.conf"),
    "LSF_SERVERDIR": sets("serverdir", str, "where elims, egroup, [esub, epsub, eexec]"
                          "(../howto/submission-programs.md) are"),
    "LSF_UNIT_FOR_LIMITS": sets("unit", _unit, _UNIT_HOLDS),
    "LSF_ENABLE_TMP_UNIT": sets("has_tmp_unit", switch, "Y: LSF_UNIT_FOR_LIMITS holds for tmp, too; else MB"),
    "LSB_BSUB_PARSE_SCRIPT": _by_commands("which scripts bsub reads `#BSUB` lines of"),
    "LSB_SHORT_HOSTLIST": _by_commands("bjobs shows `4*n001`"),
    "LSB_NTRIES": _by_commands("how often a command tries to reach the master"),
    "LSB_BJOBS_FORMAT": _by_commands("the default of `bjobs -o`"),
    "LSB_BHIST_HOURS": _by_commands("hours back from now of which `bhist -t` shows the events; 168"),
    "LSB_BHOSTS_FORMAT": _by_commands("the default of `bhosts -o`"),
    "LSB_BUSERS_FORMAT": _by_commands("the default of `busers -o`"),
    "LSB_BQUEUES_FORMAT": _by_commands("the default of `bqueues -o`"),
    "LSB_BJOBS_PENDREASON_LEVEL": _by_commands("1: `bjobs -p` shows the main reason only; else all"),
    "LSB_BJOBS_CONSISTENT_EXIT_CODE": _by_commands("bjobs ends with 255 when nothing was found"),
    **dict.fromkeys(("LSF_LIM_PORT", "LSF_RES_PORT", "LSB_MBD_PORT", "LSB_SBD_PORT", "LSB_QUERY_PORT",
                     "LSF_NON_PRIVILEGED_PORTS", "LSB_NQS_PORT"), _PORTS),
    "LSB_SHAREDIR": _by_commands("[lsb.acct and lsb.events](ports-and-files.md) are written to CLUSTER/logdir in it"),
    **dict.fromkeys(("LSF_BINDIR", "LSF_LIBDIR", "LSF_ENVDIR", "LSF_LOGDIR", "LSF_TOP", "LSF_VERSION",
                     "LSF_INCLUDEDIR", "LSF_MANDIR", "LSF_MISC", "XLSF_APPDIR", "XLSF_UIDDIR", "LSF_INDEP",
                     "LSF_MACHDEP", "LSF_TMPDIR", "LSF_LICENSE_FILE", "LSF_ENTITLEMENT_FILE", "LSB_TSJOBS_CONFDIR"),
                    _PLACES),
    **dict.fromkeys(("LSF_LOG_MASK", "LSF_TIME_CMD", "LSB_CMD_LOG_MASK", "LSB_CMD_LOGDIR"), _DEBUG),
    **dict.fromkeys(("LSF_MASTER_LIST", "LSF_SERVER_HOSTS"), Ignored("agents know the master by their ticket")),
    "LSF_AUTH": Ignored("certificates and the kernel say who is who"),
    "LSF_AUTH_DAEMONS": Ignored("certificates and the kernel say who is who"),
    "LSB_MAILPROG": _by_agents("program that [sends mail](../howto/mail.md), as sendmail does; without it none does"),
    "LSB_MAILTO": _by_agents("address of a job's mail, of `!U` (its user) and `!H` (its submission host); `!U`"),
    "LSB_MAILSIZE_LIMIT": _by_agents("KB of output that a mail holds; 8192, and never more"),
    "LSB_ECHKPNT_METHOD": _by_agents("the [method](checkpoints.md) of jobs that name none"),
    "LSB_ECHKPNT_METHOD_DIR": _by_agents("where its programs are; LSF_SERVERDIR"),
    "LSB_ECHKPNT_KEEP_OUTPUT": Ignored("what the programs print is always kept: as Y"),
    "LSB_MAILSERVER": missed("LSB_MAILPROG names the program that sends mail"),
    "LSB_MAIL_FROM_DOMAIN": missed("LSB_MAILPROG knows the domain"),
    "LSB_JOB_CPULIMIT": Ignored("a CPU limit is each process's, as with N; that of a running job cannot be changed"),
    "LSB_RESOURCE_ENFORCE": missed("memory is always enforced; processors are where a job asks for affinity[...]",
                                   lambda text: "cpu" in text.lower()),
    **dict.fromkeys(("LSB_JOB_MEMLIMIT", "LSB_MEMLIMIT_ENFORCE", "LSF_PROCESS_TRACKING",
                     "LSF_LINUX_CGROUP_ACCT", "LSB_MEMLIMIT_ENF_CONTROL"),
                    Ignored("memory limits are always the job's, and enforced by control groups")),
    "LSB_MOD_ALL_JOBS": Ignored("what can be changed of running jobs is always allowed"),
    "LSB_REQUEUE_TO_BOTTOM": missed("a requeued job keeps its place"),
    "LSB_MIG2PEND": missed("a migrated job keeps its place"),
    "LSB_SIGSTOP": Ignored("jobs are stopped by SIGSTOP"),
    "LSB_SET_TMPDIR": missed("TMPDIR is the user's"),
    "LSB_JOB_TMPDIR": missed("TMPDIR is the user's"),
    "LSB_UTMP": Ignored("jobs are not entered into utmp"),
    **dict.fromkeys(("LSF_BIND_JOB", "LSB_BIND_JOB"), missed("a job is bound if it says so: affinity[...]")),
    "LSB_PTILE_PACK": missed("no such policy"),
    "LSB_STDOUT_DIRECT": Ignored("output always goes directly to its file: as Y"),
    "LSB_ARRAY_SCHED_ORDER": Ignored("elements start in order of their indices"),
    "LSB_ESUB_METHOD": _by_commands("names of [esub programs](../howto/submission-programs.md) for every submission"),
    "LSB_ESWITCH_METHOD": _by_commands("names of [eswitch programs](../howto/submission-programs.md) for all switches"),
    "LSF_ESUBDIR": Ignored("esub programs are in LSF_SERVERDIR"),
    "LSB_MAX_PACK_JOBS": _by_commands("jobs of one request of `bsub -pack`, 300, at most 1000; 0 switches packs off"),
    "LSF_DISABLE_LSRUN": _by_commands("Y: lsrun and lsgrun are for administrators only"),
    "LSB_PACK_SKIP_ERROR": _by_commands("Y: `bsub -pack` goes on behind a line with an error"),
    **dict.fromkeys(("LSB_API_CONNTIMEOUT", "LSB_API_RECVTIMEOUT", "LSF_API_CONNTIMEOUT", "LSF_API_RECVTIMEOUT"),
                    Ignored("LSB_NTRIES bounds the wait")),
    **dict.fromkeys(("LSB_INTERACT_MSG_ENH", "LSB_INTERACT_MSG_INTVAL"),
                    Ignored("bjobs -l says why an interactive job waits")),
    **dict.fromkeys(("LSB_QMBD_PORT", "LSB_QMBD_THREAD_NUM", "LSB_QMBD_ALIVE_TIME", "LSB_QMBD_MAX_TASK_NUM",
                     "LSB_QMBD_JOB_SYNC_MODE", "NEWJOB_REFRESH"), _QUERY),
    **dict.fromkeys(("LIM_NO_MIGRANT_HOSTS", "LSF_HOST_ADDR_RANGE", "LSF_DYNAMIC_HOST_WAIT_TIME",
                     "LSF_DYNAMIC_HOST_TIMEOUT"), Ignored("a host joins with a ticket")),
    "LSF_LOCAL_RESOURCES": missed("lsf.cluster says which hosts have a resource"),
    "LSB_SSH_XFORWARD_CMD": missed("windows of jobs are not forwarded"),
    "LSB_SACCT_ONE_UG": missed("limits of all of a user's groups count"),
    "LSF_UGROUP_TRANSFER": missed("groups of users are those of the execution host"),
    "LSF_DEFAULT_EXTSCHED": missed("no scheduler of another vendor's machines"),
    "LSB_BMGROUP_ALLREMOTE_EXPAND": Ignored("one cluster only"),
    "LSF_STRICT_CHECKING": Ignored("what daemons say to each other is always sealed: as Y"),
    "LSB_MBD_MAX_SIG_COUNT": Ignored("signals to jobs are never held back"),
    **dict.fromkeys(("LIM_COMPUTE_ONLY", "LIM_RSYNC_CONFIG"), Ignored("options of lava-agent")),
    **dict.fromkeys(("LIM_DEFINE_NCPUS", "EGO_DEFINE_NCPUS"), missed(
        "agents count a slot for each core; MXJ of lsb.hosts or lava-agent --slots sets another number",
        lambda text: text.strip().lower() not in ("", "cores"))),
    "LSF_LSLOAD_FORMAT": _by_commands("the default of `lsload -o`"),
    "LSF_LSHOSTS_FORMAT": _by_commands("the default of `lshosts -o`"),
    "LSB_BWAIT_IN_JOBS": _by_commands("N: bwait is refused within jobs"),
    "LSB_BWAIT_REREG_INTERVAL": _by_commands("minutes after which bwait asks anew; 10"),
    **dict.fromkeys(("LSB_GPU_NEW_SYNTAX", "LSF_GPU_AUTOCONFIG", "LSF_GPU_RESOURCE_IGNORE"), _GPU),
    "LSB_PRE_POST_EXEC_USER": sets("commands_user", account_name, "the user of the queues' pre- and post-execution "
                                   "commands where the queue has no `PRE_POST_EXEC_USER`; LSF has it in lsf.sudoers"),
    "LSB_GPU_REQ": sets("gpu_requirement", gpu_requirement, "what `-gpu -` means where the queue has no `GPU_REQ`"),
    "LSB_MAX_JOB_DISPATCH_PER_SESSION": Ignored("no bound is needed"),
    "LSB_SUBK_SHOW_EXEC_HOST": Ignored("not shown"),
    "LSF_HPC_EXTENSIONS": _by_commands("SHORT_EVENTFILE: hosts in lsb.acct as `4*n001`; no others to switch on"),
    "LSF_STRICT_RESREQ": Ignored("requirements are always read strictly: as Y"),
    "LSB_NCPU_ENFORCE": Ignored("fairshare always counts slots: as 1"),
    "LSF_ROOT_USER": Ignored("root submits from LAVA_ADMIN_HOSTS"),
    "LSB_DISPLAY_YEAR": Ignored("dates are shown without the year"),
    "LSF_MQ_BROKER_HOSTS": Ignored("no message broker"),
    **dict.fromkeys(("LSB_MODE", "LSF_DEFAULT_INSTALL", "LSF_LINK_PATH", "LSF_EGO_ENVDIR", "LSF_LIVE_CONFDIR",
                     "LSF_GETCONF_TIMES", "LSF_GETCONF", "LSF_SUPPORT_SSH"), Ignored("how LSF itself was installed")),
    **dict.fromkeys(("LSF_PIM_SLEEPTIME_UPDATE", "LSF_PIM_LINUX_ENHANCE", "LSF_PIM_SLEEPTIME",
                     "LSF_RES_SYNCUP_INTERVAL", "DAEMON_SHUTDOWN_DELAY", "LSB_QUERY_ENH", "LSF_UDP_TO_TCP_THRESHOLD",
                     "LSF_CALL_LIM_WITH_TCP", "LSF_DUALSTACK_PREFER_IPV6", "LSF_LSADM_AUDIT_LOG"),
                    Ignored("how LSF's own daemons work")),
    "LSB_DISABLE_LIMLOCK_EXCL": Ignored("an exclusive job always has its hosts for itself"),
    "LSB_BJOBS_DISPLAY_ENH": Ignored("bjobs shows what lava knows"),
    "LSB_ENABLE_HPC_ALLOCATION": Ignored("slots are always counted by tasks: as Y"),
    **dict.fromkeys(("LSF_STRIP_DOMAIN", "LSF_RSH", "LSF_DAEMONS_CPUS", "LSF_ENABLE_EGO",
                     "LSF_EGO_DAEMON_CONTROL", "LSF_PAM_HOSTLIST_USE", "LSB_CHUNK_RUSAGE",
                     "LSF_DATA_HOSTS", "LSF_LICENSE_ACCT_PATH"), Ignored("how LSF's own daemons work")),
    **IGNORED,
    "LSB_DEFAULT_JOBGROUP": missed("DEFAULT_JOBGROUP in lsb.params, or this variable of a user's environment"),
}  # fmt: skip
# Families of names: LSF's own diagnostics, and hosts from clouds.
_PREFIXES = (
    "LSB_RC_",
    "EBROKERD_",
    "LSB_DEBUG_",
    "LSF_DEBUG_",
    "LSB_TIME_",
    "LSF_TIME_",
    "LSB_DEBUG",
    "LSF_DEBUG",
    "LSF_MQ_",
    "EGO_",
)


def read_conf(document: Document, site: Site) -> Fields:
    """Read directories and units into ``site``; return the fields confdir and lsb_confdir."""
    for section in document.sections:
        site.wrong(cell_of(section), f"Begin {section.name}: lsf.conf has NAME=VALUE lines only")
    known = {
        **CONF,
        **{
            name: Ignored("LSF's own diagnostics, or hosts from clouds")
            for name in document.settings
            if _is_diagnostic(name)
        },
    }
    fields = site.read(document.settings, known)
    site.unit, site.has_tmp_unit = fields.get("unit", ""), fields.get("has_tmp_unit", False)
    site.accounts.egroup_dir = fields.get("serverdir", "")
    site.settings = {name: cell.text for name, cell in document.settings.items()}
    return fields


def _is_diagnostic(name: str) -> bool:
    return name.startswith(_PREFIXES) and name not in CONF
