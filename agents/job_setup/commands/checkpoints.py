"""The programs that make and use a job's checkpoints: where they are, and which method names them.

What the job names comes before the site's settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.job_setup.programs import TRAPS
from agents.shepherd.messages import CheckpointSetup
from protos.jobs_pb2 import Checkpoint

METHOD, METHOD_DIR = "LSB_ECHKPNT_METHOD", "LSB_ECHKPNT_METHOD_DIR"
DEFAULT = "default"  # LSF's name for the method that is meant without a name; lava has no program of its own for it


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """Settings of lsf.conf."""

    method: str = ""
    programs: str = ""  # directory

    @staticmethod
    def of(settings: Mapping[str, str]) -> "CheckpointSettings":
        """Read them from the master's welcome."""
        programs = settings.get(METHOD_DIR) or settings.get("LSF_SERVERDIR") or ""
        return CheckpointSettings(settings.get(METHOD, ""), programs)


def setup_of(checkpoint: Checkpoint, site: CheckpointSettings, bin_dir: str) -> CheckpointSetup:
    """Return what the shepherd of the job's first host must know.

    Args:
        bin_dir: the directory of the programs where neither job nor site names one.
    """
    method = checkpoint.method or site.method or DEFAULT
    programs = checkpoint.programs or site.programs or bin_dir
    periods = (checkpoint.period_s, checkpoint.first_s)
    source = (checkpoint.restarts_from, checkpoint.forces_restart)
    return CheckpointSetup(checkpoint.directory, programs, method, *periods, TRAPS, *source)
