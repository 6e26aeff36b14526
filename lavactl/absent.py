"""Commands of LSF that lava does not have, each with the reason or with what takes its place."""

# A name that becomes a command is taken out here: a test sees to it.
ABSENT = {
    "bjdep": "bjdepinfo shows the dependencies of a job.",
    "lseligible": "bhosts -R REQUIREMENT lists the hosts that meet a requirement.",
    "bimages": "images of containers are not listed; podman images on a host lists those that are there.",
    **dict.fromkeys(
        ("bclusters", "bgpinfo", "bqc"),
        "there is one cluster: no jobs are forwarded to others; lsclusters and badmin showstatus show it.",
    ),
    "bconf": "the files are edited: badmin ckconfig checks them, badmin reconfig takes them on while jobs run, and "
    "badmin mbdhist tells by whom and when; badmin hghostadd, qopen and their like change groups and queues at once.",
    "bdata": "there is no data manager; lavactl stage copies files to where a job runs.",
    "battr": "attributes of hosts are not supported; lsf.shared names resources of hosts.",
    "bentags": "tags for energy are not supported.",
    **dict.fromkeys(
        ("lstcsh", "lsltasks", "lsrtasks"),
        "tasks outside of jobs are not supported; lsrun submits a short job, blaunch starts tasks inside of one.",
    ),
    "lsacct": "tasks outside of jobs are not supported; bacct and busage tell what jobs have used.",
    "lsrcp": "lavactl stage copies files to where a job runs, bsub -f with a job.",
    "lsloadadj": "load is not adjusted by hand; a job's rusage reserves what it will use.",
    "lsaddhost": "a host joins with a ticket: lavactl init DIR --new-ticket.",
    "lsrmhost": "a host is removed by badmin hremove.",
    **dict.fromkeys(("xlsbatch", "xbmod", "xbsub"), "there are no windows; btop, bjobs, bmod and bsub do it."),
}
