"""bgdel: delete job groups without jobs."""

from lavactl.errors import FAILURE, CommandError
from lavactl.options import FLAG, VALUE, Grammar, Options, answered
from lavactl.text.render import clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bgdel /job/group ...
       bgdel -c /job/group ... | -u user | -u all | 0
       bgdel -h | -V
  -c  the group and all below it, as far as they are empty
  -u  all empty groups that the user, or any user, has created
  0   all empty groups of your own
"""
GRAMMAR = Grammar("bgdel", USAGE, {"c": FLAG, "u": VALUE, "L": "bgadd and bgmod set limits."})


def main(argv: list[str], io: "Io") -> int:
    """Run bgdel."""
    if answered(argv, USAGE, io):
        return 0
    code = 0
    for request in requests(GRAMMAR.parse(argv)):
        try:
            reply = io.client().change_job_group(request)
        except CommandError as error:
            io.error(str(error))
            code = FAILURE
            continue
        for path in reply.paths:
            io.print(f"Job group <{clean(path)}> is deleted.")
    return code


def requests(options: Options) -> list[cluster_pb2.JobGroupRequest]:
    """One request for each group named, or one for all groups of a user."""
    user = options.last("u")
    if user is not None:
        if options.words or "c" in options:
            raise GRAMMAR.wrong("-u stands for itself")
        action = cluster_pb2.REMOVE_ALL_GROUPS if user == "all" else cluster_pb2.REMOVE_GROUPS_OF_USER
        return [cluster_pb2.JobGroupRequest(action=action, name="" if user == "all" else user)]
    if options.words == ["0"] and "c" not in options:
        return [cluster_pb2.JobGroupRequest(action=cluster_pb2.REMOVE_GROUPS_OF_USER)]
    if not options.words:
        raise GRAMMAR.wrong("the job group is missing")
    action = cluster_pb2.REMOVE_GROUPS_BELOW if "c" in options else cluster_pb2.REMOVE_GROUP
    return [cluster_pb2.JobGroupRequest(action=action, name=word) for word in options.words]
