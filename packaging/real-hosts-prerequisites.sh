#!/bin/sh
# What `make test-real-hosts` needs besides .venv: root, Debian's debootstrap and systemd-nspawn, which are installed, and
# control groups, overlays and network namespaces of this machine. Exit code 3 with a sentence where hosts can't be booted.
set -eu

cannot() {
    echo "test-real-hosts: no hosts can be booted here: $*" >&2
    exit 3
}

[ "$(id -u)" -eq 0 ] || cannot "only root can boot hosts"
for program in debootstrap systemd-nspawn ip; do
    command -v "$program" >/dev/null || {
        export DEBIAN_FRONTEND=noninteractive
        apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=400 install debootstrap systemd-container iproute2 \
            >/dev/null || cannot "debootstrap, systemd-container or iproute2 cannot be installed"
    }
done

space=lvrh-$$
ip netns add "$space" 2>/dev/null || cannot "no network namespace can be made"
ip netns del "$space"
for groups in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
    [ ! -f "$groups/cgroup.procs" ] || break
done
mkdir "$groups/$space" 2>/dev/null || cannot "no control group can be made in $groups"
rmdir "$groups/$space"
place=$(mktemp -d)
mkdir "$place/lower" "$place/upper" "$place/work" "$place/root"
layers="lowerdir=$place/lower,upperdir=$place/upper,workdir=$place/work"
mount -t overlay overlay -o "$layers" "$place/root" 2>/dev/null || cannot "no overlay can be mounted in $place"
umount "$place/root"
rm -rf "$place"
