#!/bin/sh
# setup.sh [PYTHON]: make .venv, or bring it up to requirements.lock. Quick and harmless when repeated.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}

say() { echo "setup: $*" >&2; }

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    say "Python 3.11 or newer is needed, and '$python' is not one; name another: make setup PYTHON=/path/to/python3.11"
    exit 1
}

if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        apt-get -qq -o DPkg::Lock::Timeout=400 update
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=400 \
            install python3-venv >/dev/null
    else
        say "Python's venv module is missing here; ask the administrator to install the package python3-venv"
        exit 1
    fi
fi

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv
    "$python" -m venv .venv
fi

# Twice -q: the settings of a site's package index may warn about every single package.
.venv/bin/python -m pip install -q -q --disable-pip-version-check -r requirements.lock
.venv/bin/python -m pip install -q -q --disable-pip-version-check --no-deps --no-build-isolation --editable .
# Users whom the checkout does not belong to can't keep what Python compiles, and every command would compile it again.
.venv/bin/python -m compileall -q lavad lavactl agents protos
packaging/stub.sh
touch .venv/.ready
