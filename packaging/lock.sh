#!/bin/sh
# lock.sh [PYTHON]: write requirements.lock anew: the newest versions that setup.cfg allows, exactly as pip resolved them.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$python" -m venv "$scratch/venv"
# mpich is no dependency of lava: it is the MPI that the demo and the tests find in .venv.
"$scratch/venv/bin/python" -m pip install -q -q --disable-pip-version-check '.[mpi,dev]' mpich
{
    sed -n '/^#/p' requirements.lock
    "$scratch/venv/bin/python" -m pip freeze --all | grep -v -e '^pip==' -e '^wheel==' -e '^lava-hpc'
} >"$scratch/lock"
cp "$scratch/lock" requirements.lock
