"""Files put where lavad keeps its copy of lsb.params for other programs: named as not read, and left as they are."""

from pathlib import Path

from lavad.api.cluster.configuration import read_policy
from lavad.api.cluster.installation import Installation
from lavad.settings import read_settings
from tests.config.files import write

LAVA_CONF = "LAVA_LISTEN=127.0.0.1:6920\nLAVA_ENROL_LISTEN=127.0.0.1:6921\nLAVA_STATE_DIR=/var/lib/lava\n"
COPIES = "lsf/lsbatch/lava/configdir"
QUEUES = "Begin Queue\nQUEUE_NAME = q\nEnd Queue\n"


def test_files_beside_the_copy_are_named(tmp_path: Path) -> None:
    """`badmin showconf mbd` names that directory: what a site put there had no effect, without a word."""
    settings = read_settings(write(tmp_path, {"lava.conf": LAVA_CONF}))
    installation = Installation(settings)
    installation.take(read_policy(settings))
    copy = tmp_path / COPIES / "lsb.params"
    assert copy.is_file()
    assert read_policy(settings).complaints == ()
    write(tmp_path, {f"{COPIES}/lsb.queues": QUEUES, f"{COPIES}/lsb.params": "Begin Parameters\nEnd Parameters\n"})
    found = read_policy(settings)
    why = f" not read: lavad writes this directory; LSF's files count in {tmp_path}"
    assert list(map(str, found.warnings)) == [f"{copy}:{why}", f"{tmp_path}/{COPIES}/lsb.queues:{why}"]
    installation.take(found)
    assert copy.read_text() == "Begin Parameters\nEnd Parameters\n"


def test_files_that_lsf_conf_names_there_are_read(tmp_path: Path) -> None:
    """The directory is as good as any other if LSB_CONFDIR says so."""
    files = {"lava.conf": LAVA_CONF, "lsf.conf": "LSB_CONFDIR=lsf/lsbatch\n", f"{COPIES}/lsb.queues": QUEUES}
    found = read_policy(read_settings(write(tmp_path, files)))
    assert (found.complaints, [queue.name for queue in found.policy.queues]) == ((), ["q", "default"])
