"""Plugin ssh without sshd and keys: a program `ssh`, first in PATH, that reaches the tasks of the job by blaunch.

It takes the command line of OpenSSH's client. The user is always the job's own; options about keys, addresses and
terminals have no meaning here and are skipped; those that would forward something are refused.
"""

import shlex
from collections.abc import Mapping
from types import MappingProxyType

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task
from agents.job_setup.told.values import PROGRAMS, File, Told
from agents.job_setup.told.volcano import names_of

NAMES_FILE = "ssh_hosts"
HOME_OF_ROOT = "/root"  # where the origin has its keys
# The marker tells the agent of the other host in which task's place the command runs.
SCRIPT = """\
#!/bin/sh
# ssh between the tasks of one job: a task's name is replaced by its host, and blaunch runs the command there.
names={names}
blaunch={blaunch}
export LSB_JOBID="${{LSB_JOBID:-{job}}}"  # a launcher from which it is hidden, because it takes it for IBM's
fail() {{ echo "ssh: $1" >&2; exit 255; }}
input= target= is_background=
while :; do
    OPTIND=1
    while getopts :46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w: letter; do
        case $letter in
        n) input=-n ;;
        f) input=-n is_background=y ;;
        V) echo "OpenSSH_compatible, lava" >&2; exit 0 ;;
        D|G|J|L|M|N|O|Q|R|W|s|w) fail "option -$letter is not possible between the tasks of a job" ;;
        :) fail "option requires an argument -- $OPTARG" ;;
        \\?) fail "unknown option -- $OPTARG" ;;
        esac
    done
    shift $((OPTIND - 1))
    [ -z "$target" ] || break
    [ $# -gt 0 ] || fail "usage: ssh [option ...] [user@]host [command ...]"
    target=$1
    shift
done
host=${{target#ssh://}}
host=${{host##*@}}
[ "$host" = "$target" ] || [ "$target" = "${{target#ssh://}}" ] || host=${{host%%:*}}
found=$(awk -v wanted="$host" 'tolower($1) == tolower(wanted) {{ print $2, $3; exit }}' "$names")
if [ -n "$found" ]; then
    host=${{found%% *}}
    LAVA_SSH_TASK=${{found#* }}
    export LAVA_SSH_TASK
else
    unset LAVA_SSH_TASK
fi
[ $# -gt 0 ] || set -- 'exec "${{SHELL:-/bin/sh}}" -l'
if [ -n "$is_background" ]; then
    "$blaunch" $input -z "$host" -- "$@" &
    exit 0
fi
exec "$blaunch" $input -z "$host" -- "$@"
"""


def tell(scene: Scene) -> Told:
    """Tell of the program, and of the client's configuration where the user is root.

    Others have none: a file of theirs in a directory that the kernel trusts must not appear there by root's hand.
    Options: ssh-key-file-path, ssh-port.
    """
    given = scene.option("ssh-key-file-path", "")
    path = f"{given or f'{HOME_OF_ROOT}/.ssh'}/config"
    files = {path: File(_config(scene), 0o644 if given else 0o600)} if scene.blob.uid == 0 else {}
    return program(scene).joined(Told(files=files, names=names_of(scene)))


def program(scene: Scene, named: Mapping[str, Task] = MappingProxyType({})) -> Told:
    """Tell of the program alone; conventions whose launchers call ssh need it. ``named``: further names of tasks."""
    host = scene.host
    names = f"{host.directory}/{NAMES_FILE}"
    blaunch = shlex.quote(f"{host.bin_dir}/blaunch")
    script = SCRIPT.format(names=shlex.quote(names), blaunch=blaunch, job=scene.blob.job)
    own = {
        f"{PROGRAMS}/ssh": File(script.encode(), 0o755),
        NAMES_FILE: scene.once(NAMES_FILE, lambda: File(_hosts(scene, named))),
    }
    return Told(own=own, path_prefix=f"{host.directory}/{PROGRAMS}")


def path_of_program(scene: Scene) -> str:
    """Return the path of the program."""
    return f"{scene.host.directory}/{PROGRAMS}/ssh"


def _hosts(scene: Scene, named: Mapping[str, Task]) -> bytes:
    """Return lines NAME HOST ROLE/INDEX; also of the full names that MPI launchers use."""
    lines = []
    for task in scene.table.tasks:
        names = (*scene.names(task), *scene.full_names(task))
        lines += [f"{name} {task.host} {task.role}/{task.index}\n" for name in dict.fromkeys(names)]
    lines += [f"{name} {task.host} {task.role}/{task.index}\n" for name, task in named.items()]
    return "".join(lines).encode()


def _config(scene: Scene) -> bytes:
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    port = scene.option("ssh-port", "22")
    for task in scene.table.tasks:
        lines += [f"Host {scene.pod(task)}", f"  HostName {scene.in_job(task)}", f"  Port {port}"]
    return "".join(f"{line}\n" for line in lines).encode()
