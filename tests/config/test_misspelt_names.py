"""Unknown users and groups: a warning for each place, not an error, since accounts may be added later."""

from pathlib import Path

from tests.config.files import Few, loaded, said

UNKNOWN = "no user of this host and no user group; counts once there is such a user"


def test_names_in_every_file(tmp_path: Path) -> None:
    """Reported with file, line and name, and with a similar known name, if any."""
    found = loaded(tmp_path, {
        "lsf.cluster.c1": """\
            Begin ClusterAdmins
            ADMINISTRATORS = alise
            End ClusterAdmins
            """,
        "lsb.users": """\
            Begin UserGroup
            GROUP_NAME  GROUP_MEMBER      USER_SHARES
            outer       (chemistry zed)   ()
            chemistry   (alice carl)      ([alice,3] [quentin,1])
            End UserGroup
            Begin User
            USER_NAME   MAX_JOBS
            chemistri   5
            default     9
            End User
            """,
        "lsb.queues": """\
            Begin Queue
            QUEUE_NAME = normal
            USERS = alice chemstry
            ADMINISTRATORS = bob bobb
            FAIRSHARE = USER_SHARES[[chemistry,2] [physics,1] [default,1]]
            DEFAULT_USER_GROUP = chemisty
            End Queue
            """,
        "lsb.resources": """\
            Begin Limit
            NAME = few
            PER_USER = all ~carrol
            SLOTS = 4
            End Limit
            Begin ResourceReservation
            NAME = night
            USERS = mallory
            End ResourceReservation
            """,
    }, accounts=Few())  # fmt: skip
    assert not found.errors
    assert said(found) == [
        f"lsb.queues:3: chemstry: {UNKNOWN}; did you mean chemistry?",
        f"lsb.queues:4: bobb: {UNKNOWN}; did you mean bob?",
        f"lsb.queues:5: physics: {UNKNOWN}",
        f"lsb.queues:6: chemisty: {UNKNOWN}; did you mean chemistry?",
        f"lsb.resources:3: carrol: {UNKNOWN}; did you mean carol?",
        f"lsb.resources:8: mallory: {UNKNOWN}",
        f"lsb.users:3: zed: {UNKNOWN}",
        f"lsb.users:4: carl: {UNKNOWN}; did you mean carol?",
        f"lsb.users:4: quentin: {UNKNOWN}",
        f"lsb.users:8: chemistri: {UNKNOWN}; did you mean chemistry?",
        f"lsf.cluster.c1:2: alise: {UNKNOWN}; did you mean alice?",
    ]


def test_many_of_one_line_are_one_warning(tmp_path: Path) -> None:
    """A trial on another machine knows no users: the first few are named. A refused value is reported once."""
    found = loaded(tmp_path, {
        "lsb.queues": """\
            Begin Queue
            QUEUE_NAME = normal
            USERS = u1 u2 u3 u4 u5 u6 u7 alice staff
            ADMINISTRATORS = nobody gone/
            End Queue
            """,
    }, accounts=Few())  # fmt: skip
    assert said(found) == [
        f"lsb.queues:3: u1 u2 u3 u4 u5 and 2 more: {UNKNOWN}",
        "lsb.queues:4: ADMINISTRATORS = nobody gone/: gone/: there is no such user group",
        f"lsb.queues:4: nobody: {UNKNOWN}",
    ]
