#!/bin/sh
# What `make test-real-hosts` needs besides .venv: root, and Debian's debootstrap and systemd-nspawn, which are installed.
set -eu

if [ "$(id -u)" -ne 0 ]; then
    echo "test-real-hosts: only root can boot hosts" >&2
    exit 1
fi
for program in debootstrap systemd-nspawn; do
    command -v "$program" >/dev/null || {
        export DEBIAN_FRONTEND=noninteractive
        apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=400 install debootstrap systemd-container >/dev/null
    }
done
