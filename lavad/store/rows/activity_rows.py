"""History rows of a job's activity on its hosts: hangs, saved stacks, hosts without a process of it."""

from lavad.core import activity_events as a
from lavad.core import task_events as t
from lavad.store.rows import values as v


def lines(event: a.ActivityEvent | t.HangEnded) -> list[tuple[str, str]]:
    """Return kind and details of the rows of an event; what its policy does about a hang has rows of its own."""
    match event:
        case a.JobHangs():
            return [("hangs", v.detail(seconds=round(event.inactive_s)))]
        case a.JobActive():
            return [("active", "")]
        case a.StacksSaved():
            return [("stacks", v.detail(host=event.host, path=event.path, words=event.words))]
        case a.HostUnused():
            return [("unused", v.detail(host=event.host, seconds=round(event.seconds)))]
    return []
