"""Parameters of lsb.params and lsb.queues that lava passes over."""

from lavad.config.site import Ignored, Table, missed

_POWER = missed("hosts are never switched off")
_CLUSTERS = Ignored("one cluster only")
_SESSION = Ignored("no session scheduler; an array's elements start fast enough")
_EGO = Ignored("how LSF's own daemons work")
PARAMETERS: Table = {
    **dict.fromkeys(("POWER_ON_WAIT", "POWER_RESET_CMD", "POWER_RESUME_CMD", "POWER_STATUS_LOG_MAX",
                     "POWER_SUSPEND_CMD", "POWER_SUSPEND_TIMEOUT"), _POWER),
    **dict.fromkeys(("SSCHED_ACCT_DIR", "SSCHED_MAX_RUNLIMIT", "SSCHED_MAX_TASKS", "SSCHED_REQUEUE_LIMIT",
                     "SSCHED_RETRY_LIMIT", "SSCHED_UPDATE_SUMMARY_BY_TASK", "SSCHED_UPDATE_SUMMARY_INTERVAL"),
                    _SESSION),
    **dict.fromkeys(("MBD_EGO_CONNECT_TIMEOUT", "MBD_EGO_READ_TIMEOUT", "MBD_EGO_TIME2LIVE",
                     "EGO_SLOTBASED_VELOCITY_SLA", "SLA_TIMER", "SCHEDULER_THREADS", "MAX_JOBINFO_QUERY_PERIOD",
                     "MIN_REFRESH_TIME", "ENABLE_DIAGNOSE", "PERFORMANCE_THRESHOLD_FILE", "EVENT_STREAM_FILE",
                     "MAX_EVENT_STREAM_FILE_NUMBER", "LSB_STOP_ASKING_LICENSES_TO_LS"), _EGO),
    **dict.fromkeys(("MC_PENDING_REASON_PKG_SIZE", "MC_PENDING_REASON_UPDATE_INTERVAL", "MC_SORT_BY_SUBMIT_TIME",
                     "FWD_JOB_FACTOR", "NQS_QUEUES_FLAGS", "NQS_REQUESTS_FLAGS"), _CLUSTERS),
    "EXTEND_JOB_EXCEPTION_NOTIFY": missed("eadmin is told the same of each exception"),
    **dict.fromkeys(("MAX_PROTOCOL_INSTANCES", "STRIPING_WITH_MINIMUM_NETWORK"),
                    missed("no scheduler of another vendor's machines")),
    "AC_JOB_DISPATCH_DELAY_TIME": missed("hosts are never deployed for a job"),
    "BJOBS_RES_REQ_DISPLAY": Ignored("bjobs -l shows the job's and the combined requirement"),
    "CHUNK_JOB_DURATION": Ignored("each job starts by itself, which is cheap enough"),
    "DEFAULT_RC_ACCOUNT_PER_PROJECT": Ignored("no hosts from clouds"),
    "DEFAULT_RESREQ_ORDER": missed("without order[] hosts are taken by preference, then by name"),
    "DISPATCH_BY_QUEUE": Ignored("each pass sends its decisions at once"),
    "DOCKER_IMAGE_AFFINITY": missed("hosts are not chosen by the images that they hold"),
    "ENABLE_EXIT_RATE_PER_SLOT": missed("EXIT_RATE counts for the host as a whole"),
    "ENABLE_HOST_INTERSECTION": Ignored("hosts of the job that its queue lacks are left out, as with Y"),
    "FAIRSHARE_JOB_COUNT": missed("RUN_JOB_FACTOR counts slots"),
    "GPU_REQ_MERGE": Ignored("the job's -gpu comes before the queue's GPU_REQ, as a whole"),
    "JOB_CWD_TTL": missed("directories of -cwd stay"),
    "JOB_RUNLIMIT_RATIO": missed("a run limit may be any multiple of an estimate"),
    "MAX_JOB_ATTA_SIZE": Ignored("lava has a bound of its own for data of bpost"),
    "MAX_TOTAL_TIME_PREEMPT": missed("MAX_JOB_PREEMPT bounds how often a job is preempted"),
    "ORPHAN_JOB_TERM_GRACE_PERIOD": missed("orphans end at once"),
    "PLAN": Ignored("reservations are made without being asked for"),
    "REMOVE_HUNG_JOBS_FOR": missed("bkill -r removes jobs that do not end"),
    "SCHED_PER_JOB_SORT": Ignored("hosts are sorted anew for each job: as Y"),
    "HIST_MINUTES": missed("HIST_HOURS says how fast use fades"),
    "TRACK_ELIGIBLE_PENDINFO": missed("the time for which a job was eligible is not counted"),
    "USE_SUSP_SLOTS": missed("slots of suspended jobs are free for others"),
}  # fmt: skip
QUEUE: Table = {
    **dict.fromkeys(("NO_PREEMPT_FINISH_TIME", "NO_PREEMPT_RUN_TIME"), missed("lsb.params has it, for all queues")),
    **dict.fromkeys(("NO_PREEMPT_INTERVAL", "MAX_TOTAL_TIME_PREEMPT"),
                    missed("MAX_JOB_PREEMPT of lsb.params bounds how often a job is preempted")),
    **dict.fromkeys(("FWD_JOB_FACTOR", "FWD_USERS", "MC_FORWARD_DELAY"), _CLUSTERS),
    "CGROUP_CPU_SHARES_FACTOR": missed("jobs of a host share its processors alike"),
    "CPU_FREQUENCY": missed("the frequency of processors is left alone"),
    "DATA_TRANSFER": missed("no Data Manager"),
    "ENABLE_GPU_HIST_RUN_TIME": Ignored("follows ENABLE_HIST_RUN_TIME"),
    "ESTIMATED_RUNTIME": Ignored("starts are estimated when asked for"),
    "EXTENDABLE_RUNLIMIT": missed("a run limit is changed by bmod -W only"),
    "FAIRSHARE_ADJUSTMENT_FACTOR": missed("no plug-ins"),
    "HOSTLIMIT_PER_JOB": missed("a job may be spread over any number of hosts"),
    "MAX_SBD_XFER_RETRY": Ignored("how LSF's own daemons work"),
    "NETWORK_REQ": missed("no scheduler of another vendor's machines"),
    "PLAN": Ignored("reservations are made without being asked for"),
}  # fmt: skip
