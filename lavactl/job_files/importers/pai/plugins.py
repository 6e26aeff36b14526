"""Runtime plugins of OpenPAI: what they add to the commands of roles, and what tasks are told because of them."""

import shlex
from dataclasses import dataclass, field

from lavactl.job_files.importers.tables import Flag, Keys, Number, Required, Table, Texts, Word
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Sequence

KEY = "com.microsoft.pai.runtimeplugin"
POLICIES = {"ignore": "ignore", "fail": "fail"}


@dataclass
class Commands:
    """Commands around those of the roles: of the deployment for one role, of plugins for all."""

    before: dict[str, list[str]] = field(default_factory=dict)
    behind: dict[str, list[str]] = field(default_factory=dict)
    before_all: list[str] = field(default_factory=list)
    behind_all: list[str] = field(default_factory=list)

    def of(self, role: str, words: list[str]) -> list[str]:
        """All commands of a role, in their order."""
        return [*self.before_all, *self.before.get(role, ()), *words, *self.behind.get(role, ()), *self.behind_all]


class Plugin(Table):
    """One of ``com.microsoft.pai.runtimeplugin``: ssh, cmd and git; others are told."""

    plugin = Required("plugin", "its name")
    parameters = Keys("parameters", None, "its settings", here="those of ssh, cmd and git")
    policy = Word("failurePolicy", POLICIES, None, "whether the task goes on after its failure",
                  told="what a plugin adds is part of the commands")  # fmt: skip


class Ssh(Table):
    """Parameters of the plugin ssh."""

    jobssh = Flag("jobssh", False, "ssh between the tasks of the job")
    barrier = Flag("sshbarrier", False, "tasks wait until all can be reached",
                   told="ssh between tasks works as soon as they run: none waits for the others")  # fmt: skip
    timeout = Number("sshbarrierTimeout", 60, "how long they wait",
                     told="ssh between tasks works as soon as they run")  # fmt: skip
    user = Keys("userssh", None, "a key of the user's", here="told: users reach their hosts in the site's own way")


class Cmd(Table):
    """Parameters of the plugin cmd."""

    before = Texts("preCommands", None, "lines before the commands of all roles")
    behind = Texts("postCommands", None, "lines behind them")


def read_plugins(plugins: list[Plugin], commands: Commands) -> list[str]:
    """Read the plugins of a job; returns options of its convention."""
    options: list[str] = []
    for one in plugins:
        name, parameters = one.plugin, one.parameters
        if name == "ssh":
            options += _ssh(Ssh(parameters))
        elif name == "cmd":
            lines = Cmd(parameters)
            commands.before_all += lines.before
            commands.behind_all += lines.behind
        elif name == "git":
            commands.before_all.append(_clone(parameters))
        else:
            parameters.asked |= set(parameters.node.entries)
            one.note(None, f"ignored: lava has nothing like the plugin {name}.")
    return options


def _ssh(parameters: Ssh) -> list[str]:
    user = parameters.user
    if user.node.entries:
        user.asked |= set(user.node.entries)
        parameters.note(Ssh.user, "ignored: users reach their hosts in the site's own way.")
    return ["jobssh=yes"] if parameters.jobssh else []


def _words(fields: Fields, key: str) -> list[str]:
    """Words of a field that is a text or a list."""
    if isinstance(fields.node.get(key), Sequence):
        return fields.texts(key)
    try:
        return shlex.split(fields.text(key))
    except ValueError:
        raise fields.wrong(key, "a quote has no end.") from None


def _clone(parameters: Fields) -> str:
    words = ["git", "clone", *_words(parameters, "options"), parameters.required("repo_uri")]
    if directory := parameters.text("clone_dir"):
        words.append(directory)
    return shlex.join(words)
