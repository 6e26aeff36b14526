#!/bin/sh
# Debian packages that tests use besides .venv. As root they are installed when missing; without root the missing ones are
# named, and the tests that need them say themselves that they were left out.
set -eu

needed="gcc libc6-dev iproute2 util-linux procps strace systemd openmpi-bin libopenmpi-dev mpich libmpich-dev python3-mpi4py postgresql bubblewrap podman runc"

command -v dpkg-query >/dev/null || exit 0
# Slurm's manual pages, without its commands, which would be in the way of lava's.
pages=.cache/slurm-client
if [ "$(id -u)" -eq 0 ] && [ ! -d "$pages/usr/share/man" ] && [ ! -f /usr/share/man/man1/sbatch.1.gz ]; then
    mkdir -p "$pages"
    (cd "$pages" && apt-get -qq download slurm-client && dpkg-deb -x slurm-client_*.deb . && rm -rf usr/bin) >/dev/null 2>&1 ||
        echo "test: the manual pages of slurm-client could not be had" >&2
fi

missing=
for package in $needed; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "test: not root, so these packages stay missing:$missing" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq -o DPkg::Lock::Timeout=400 update || echo "test: the package lists could not be brought up to date" >&2
# shellcheck disable=SC2086
apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=400 install $missing >/dev/null ||
    echo "test: not all of these packages could be installed:$missing" >&2
