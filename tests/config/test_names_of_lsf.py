"""Names that LSF has: none is called unknown that published files set, or that lava's own commands read."""

import ast
from collections.abc import Iterator
from pathlib import Path

from lavad.config.conf import CONF
from lavad.config.site import Honoured
from tests.config.files import loaded, said

LAVACTL = Path(__file__).resolve().parents[2] / "lavactl"


def test_what_a_clouds_scripts_set_is_not_called_unknown(tmp_path: Path) -> None:
    """Names of lsf.conf, lsb.params and lsb.queues that published scripts write; what a site may count on is told."""
    conf = (
        "LSF_ANNOUNCE_MASTER_TCP_WAITTIME=600 LSF_SEND_CONFINFO_TCP_THRESHOLD=8975 LSF_REG_FLOAT_HOSTS=Y "
        "LSF_GET_CONF=lim LSF_NIOS_PORT_RANGE=11000-11019 LSB_SUB_COMMANDNAME=y LSF_DCGM_PORT=5555 "
        "MQTT_BROKER_PORT=1883 LSF_CLOUD_UI=Y LSF_ENABLE_EXTSCHEDULER=Y LSB_KUBE_ENABLE=Y"
    )
    parameters = (
        "Begin Parameters\nEXTEND_JOB_EXCEPTION_NOTIFY = Y\nORPHAN_JOB_TERM_GRACE_PERIOD = 90\nEnd Parameters\n"
    )
    queue = "Begin Queue\nQUEUE_NAME = q\nDATA_TRANSFER = Y\nHOSTLIMIT_PER_JOB = 2\nEnd Queue\n"
    found = loaded(tmp_path, {"lsf.conf": conf.replace(" ", "\n"), "lsb.params": parameters, "lsb.queues": queue})
    assert said(found) == [
        "lsb.params:2: EXTEND_JOB_EXCEPTION_NOTIFY: it has no effect: eadmin is told the same of each exception",
        "lsb.params:3: ORPHAN_JOB_TERM_GRACE_PERIOD: it has no effect: orphans end at once",
        "lsb.queues:3: DATA_TRANSFER: it has no effect: no Data Manager",
        "lsb.queues:4: HOSTLIMIT_PER_JOB: it has no effect: a job may be spread over any number of hosts",
        "lsf.conf:11: LSB_KUBE_ENABLE: it has no effect: lava starts jobs, not pods",
    ]


def test_settings_that_commands_read_are_honoured() -> None:
    """LSB_BWAIT_IN_JOBS and the formats of lsload and lshosts were called unknown, or without effect."""
    read = {name for path in LAVACTL.rglob("*.py") for name in settings_of(ast.parse(path.read_text(encoding="utf-8")))}
    assert {"LSB_NTRIES", "LSB_BWAIT_REREG_INTERVAL"} <= read
    assert [name for name in sorted(read) if not isinstance(CONF[name], Honoured)] == []


def settings_of(module: ast.Module) -> Iterator[str]:
    """Settings of lsf.conf that a module reads by name, or by a constant of its own."""
    constants = {
        target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setting":
            name = node.args[0]
            read = name.value if isinstance(name, ast.Constant) else constants.get(getattr(name, "id", ""))
            if isinstance(read, str) and read.startswith(("LSB_", "LSF_")):
                yield read
