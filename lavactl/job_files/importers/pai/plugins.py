"""Runtime plugins of OpenPAI: what they add to the commands of roles, and what tasks are told because of them."""

import shlex
from dataclasses import dataclass, field

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


def read_plugins(extras: Fields, commands: Commands) -> list[str]:
    """Read the plugins of a job; returns options of its convention."""
    options: list[str] = []
    for one in extras.children(KEY):
        name = one.required("plugin")
        one.word("failurePolicy", POLICIES, "")
        one.ignore(("failurePolicy",), "what a plugin adds is part of the commands")
        parameters = one.child("parameters")
        if name == "ssh":
            options += _ssh(parameters)
        elif name == "cmd":
            commands.before_all += parameters.texts("preCommands")
            commands.behind_all += parameters.texts("postCommands")
        elif name == "git":
            commands.before_all.append(_clone(parameters))
        else:
            parameters.asked |= set(parameters.node.entries)
            one.note("plugin", f"ignored: lava has nothing like the plugin {name}.")
    return options


def _ssh(parameters: Fields) -> list[str]:
    options = ["jobssh=yes"] if parameters.flag("jobssh") else []
    if parameters.flag("sshbarrier"):
        parameters.number("sshbarrierTimeout", 0)
        parameters.note("sshbarrier", "ssh between tasks works as soon as they run: none waits for the others.")
    user = parameters.child("userssh")
    if user.node.entries:
        user.asked |= set(user.node.entries)
        parameters.note("userssh", "ignored: users reach their hosts in the site's own way.")
    return options


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
