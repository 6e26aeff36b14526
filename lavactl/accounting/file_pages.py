"""Records of an lsb.acct file in the form of the master's answer."""

from lavactl.accounting.acct_file import records
from lavactl.accounting.selection import FileSelection
from lavactl.wire import messages
from protos import jobs_pb2
from protos.accounts import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO


def pages_of(
    path: str, file: "TextIO", request: messages.AccountsRequest, user: str
) -> "Iterator[jobs_pb2.AccountPage]":
    """Yield a page for each record that the request selects; the file is closed at the end."""
    selection = FileSelection(request, user)
    with file:
        for job in records(path, file):
            if selection.admits(job):
                tally, page = Tally(), jobs_pb2.AccountPage()
                tally.add(job.state == messages.DONE, job.submit_time, job.start_time, job.end_time, job.usage.cpu_s)
                tally.fill(page.summary)
                page.jobs.add(record=job)
                yield page
