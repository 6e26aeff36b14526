"""Fairshare accounts that jobs are charged to."""

from lavad.api.jobs.listing import record_message
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.users import Fairshare, Share
from lavad.core.state.fairshare import Tree
from tests.builders import ANN, Story, a_host, a_job

ANN_ALONE = Names(False, frozenset({"ann"}))
LISTED = (Share("chem", 5, ANN_ALONE, each=True), Share("bio", 1, ANN_ALONE))  # USER_SHARES[[chem@,5] [bio,1]]


def charged(group: str, *others: Share) -> str:
    """The account of a job of ann that was submitted with -G."""
    account = Tree("q", Fairshare((*LISTED, *others))).account_of("ann", group)
    assert account is not None
    assert account.share is not None
    return account.share.name


def test_a_job_is_charged_to_the_group_that_it_was_submitted_with() -> None:
    """bsub -G chem is charged to chem, although another group's share would apply without -G."""
    assert charged("chem") == "chem"
    assert charged("bio") == "bio"
    assert charged("") == "bio"


def test_a_users_own_account_does_not_stand_above_the_group_asked_for() -> None:
    """A user with a share of her own may still submit for a group."""
    own = Share("ann", 7, ANN_ALONE)
    assert charged("bio", own) == "bio"
    assert charged("", own) == "ann"


def test_bjobs_l_shows_the_account() -> None:
    """``Share group charged </bio/ann>``; empty for a queue without fairshare."""
    below = (Share("ann", 1, ANN_ALONE),)
    shared = Queue("normal", fairshare=Fairshare((Share("bio", 1, ANN_ALONE, below=below),)))
    story = Story(a_host(), policy=Policy(queues=(shared, Queue("short"))))
    shown = {}
    for queue in ("normal", "short"):
        record = story.cluster.jobs[story.submit(a_job(caller=ANN, queue=queue))]
        message = record_message(story.cluster, (record, 0, record), story.now, True, None)  # type: ignore[arg-type]
        shown[queue] = message.share_account
    assert shown == {"normal": "/bio/ann", "short": ""}
