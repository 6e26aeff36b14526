"""A reader of LSF's logs, written from lsf.md section 7 alone: it shares nothing with what writes them.

Fields come in the order of that section; what a list holds stands behind its count.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_FIELD = re.compile(r'\s*(?:"((?:[^"]|"")*)"|(\S+))')

_BEFORE_HOSTS = (
    "eventTime:i jobId:i userId:i options:i numProcessors:i submitTime:i beginTime:i termTime:i startTime:i userName:s "
    "queue:s resReq:s dependCond:s preExecCmd:s fromHost:s cwd:s inFile:s outFile:s errFile:s jobFile:s askedHosts:* "
    "execHosts:* jStatus:i hostFactor:f jobName:s command:s"
)
_RUSAGE = (
    "ru_utime ru_stime ru_maxrss ru_ixrss ru_ismrss ru_idrss ru_isrss ru_minflt ru_majflt ru_nswap ru_inblock "
    "ru_oublock ru_ioch ru_msgsnd ru_msgrcv ru_nsignals ru_nvcsw ru_nivcsw ru_exutime"
)
_AFTER_RUSAGE = (
    "mailUser:s projectName:s exitStatus:i maxNumProcessors:i loginShell:s timeEvent:s idx:i maxRMem:i maxRSwap:i "
    "inFileSpool:s commandSpool:s rsvId:s sla:s exceptMask:i additionalInfo:s exitInfo:i warningAction:s "
    "warningTimePeriod:i chargedSAAP:s licenseProject:s app:s postExecCmd:s runtimeEstimation:i jobGroupName:s "
    "requeueEvalues:s options2:i resizeNotifyCmd:s lastResizeTime:i rsvIdLong:s jobDescription:s submitEXT:2 "
    "hostRusage:5 options3:i runLimit:i avgMem:i effectiveResReq:s srcCluster:s srcJobId:i dstCluster:s dstJobId:i "
    "forwardTime:i flow_id:s acJobWaitTime:i totalProvisionTime:i outdir:s runTime:i subcwd:s network:2 affinity:s "
    "serial_job_energy:f cpi:f gips:f gbs:f gflops:f allocSlots:* ineligiblePendTime:i indexRange:3 requeueTime:i "
    "gpuRusage:k storageInfo:* finishKVP:2 schedulingOverhead:f"
)
LAYOUT = [
    *(part.split(":") for part in _BEFORE_HOSTS.split()),
    *([name, "f"] for name in _RUSAGE.split()),
    *(part.split(":") for part in _AFTER_RUSAGE.split()),
]


def fields_of(line: str) -> list[str]:
    """The fields of a line, strings without their quotes."""
    found, at = [], 0
    while at < len(line):
        match = _FIELD.match(line, at)
        assert match, line[at:]
        quoted, bare = match.groups()
        found.append(bare if quoted is None else quoted.replace('""', '"'))
        at = match.end()
    return found


def records(path: Path) -> Iterator[list[str]]:
    """The records of a file, without its first line."""
    text = path.read_text(errors="surrogateescape")
    assert text == "" or text.endswith("\n")
    for line in text.splitlines():
        if not line.startswith("#"):
            yield fields_of(line)


def job_finish(fields: list[str]) -> dict[str, Any]:
    """A JOB_FINISH record of LSF 10.1 by the names of its fields; all of it must be used up."""
    assert fields[:2] == ["JOB_FINISH", "10.1"]
    rest = iter(fields[2:])
    values = {name: _READERS[kind](rest) for name, kind in LAYOUT}
    assert list(rest) == [], "fields are left over"
    return values


def _several(width: int) -> Callable[[Iterator[str]], list[tuple[str, ...]]]:
    return lambda rest: [tuple(next(rest) for _ in range(width)) for _ in range(int(next(rest)))]


def _keyed(rest: Iterator[str]) -> dict[str, dict[str, str]]:
    hosts: dict[str, dict[str, str]] = {}
    for _ in range(int(next(rest))):
        host = next(rest)
        hosts[host] = {key: value for key, value in _several(2)(rest)}
    return hosts


_READERS: dict[str, Callable[[Iterator[str]], Any]] = {
    "i": lambda rest: int(next(rest)),
    "f": lambda rest: float(next(rest)),
    "s": lambda rest: next(rest),
    "*": lambda rest: [next(rest) for _ in range(int(next(rest)))],
    "k": _keyed,
    **{str(width): _several(width) for width in (2, 3, 5)},
}


def acct(path: Path) -> list[dict[str, Any]]:
    """All ended jobs of an lsb.acct."""
    return [job_finish(fields) for fields in records(path)]
