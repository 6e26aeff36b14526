"""Fake nvidia-cuda-mps-control: ``-d`` leaves a process behind that runs until it is killed."""

from pathlib import Path

PROGRAM = "nvidia-cuda-mps-control"
# Records its start arguments, as the real one does in its log, and is found by its pipe.
_TEXT = """\
#!/bin/sh
[ "$1" = -d ] || exit 2
[ ! -e "{fails}" ] || exit 3
mkfifo "$CUDA_MPS_PIPE_DIRECTORY/control" || exit 4
echo "user $(id -un) devices $CUDA_VISIBLE_DEVICES" >"$CUDA_MPS_LOG_DIRECTORY/control.log" || exit 5
setsid sh -c 'echo $$ >"$CUDA_MPS_LOG_DIRECTORY/pid"; exec sleep 600' >/dev/null 2>&1 </dev/null &
until [ -s "$CUDA_MPS_LOG_DIRECTORY/pid" ]; do sleep 0.01; done
"""


def put_into(directory: Path) -> tuple[Path, Path]:
    """Make the program; the answer is its path, and that of a file that keeps daemons from starting while it exists."""
    fails, program = directory / "mps-fails", directory / PROGRAM
    program.write_text(_TEXT.format(fails=fails))
    program.chmod(0o755)
    return program, fails
