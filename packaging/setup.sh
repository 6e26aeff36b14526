#!/bin/sh
# setup.sh [PYTHON]: make .venv, or bring it up to requirements.lock. Quick and harmless when repeated.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}

say() { echo "setup: $*" >&2; }

# Name the uppermost place on the way to a file that not every user may enter; nothing if there is none.
closed() {
    place=$(readlink -f "$1")
    while [ "$place" != / ]; do
        case $(stat -c %A "$place") in *[xt]) ;; *) echo "$place" ;; esac
        place=$(dirname "$place")
    done | tail -n 1
}

venv_of_debian() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
    apt-get -qq -o DPkg::Lock::Timeout=400 update || true
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=400 \
        install python3-venv >/dev/null
}

# Name an interpreter that every user may execute.
open_python() {
    for other in /usr/local/bin/python3 /usr/bin/python3; do
        [ -x "$other" ] && [ -z "$(closed "$other")" ] || continue
        "$other" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        "$other" -c 'import venv, ensurepip' 2>/dev/null || venv_of_debian || continue
        echo "$other"
        return
    done
}

# Commands and jobs of other users run by this interpreter, too: one in root's own home is none for them.
if [ "$(id -u)" -eq 0 ] && [ "$python" = python3 ] && [ ! -e .venv ]; then
    real=$("$python" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))' 2>/dev/null || true)
    shut=$([ -z "$real" ] || closed "$real")
    if [ -n "$shut" ]; then
        other=$(open_python)
        [ -z "$other" ] || say "only root may enter $shut, where $real is: $other is taken instead"
        [ -n "$other" ] || say "only root may enter $shut, where $real is: tests of other users will be left out"
        python=${other:-$python}
    fi
    shut=$(closed .)
    [ -z "$shut" ] || say "only root may enter $shut, where this copy of lava is: tests of other users will be left out"
fi

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    say "Python 3.11 or newer is needed, and '$python' is not one; name another: make setup PYTHON=/path/to/python3.11"
    exit 1
}

if ! "$python" -c 'import venv, ensurepip' 2>/dev/null && ! venv_of_debian; then
    say "Python's venv module is missing here; ask the administrator to install the package python3-venv"
    exit 1
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
