"""Lists of hosts that readers see while they change: always one of those written, never empty, never half."""

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path

from agents.job_setup.environment import OwnFiles, put_lists
from protos.common_pb2 import HostShare

CHANGES = 200


def _read_on(path: str, said: Connection) -> None:
    """Read the list as fast as possible, often, and until told to stop; the texts seen, and the number of reads."""
    seen, reads = set(), 0
    said.send("ready")
    while reads <= CHANGES or not said.poll():
        with open(path, "rb") as file:
            seen.add(file.read())
        reads += 1
    said.send((seen, reads))


def test_a_reader_sees_whole_lists_only(tmp_path: Path) -> None:
    """Of 200 sizes, written one after the other beside a reader that never pauses."""
    files = OwnFiles(tmp_path, "1-0-1")
    sizes = [[HostShare(host=f"host{at}", slots=4) for at in range(1 + number % 97)] for number in range(CHANGES)]
    path = put_lists(sizes[0], files)["LAVA_DISCOVER_HOSTS"]
    written = {Path(path).read_bytes()}
    here, there = multiprocessing.get_context("fork").Pipe()
    reader = multiprocessing.get_context("fork").Process(target=_read_on, args=(path, there))
    reader.start()
    try:
        assert here.recv() == "ready"
        for size in sizes:
            put_lists(size, files)
            written.add(Path(path).read_bytes())
            time.sleep(0.001)
        here.send("stop")
        seen, reads = here.recv()
    finally:
        reader.join(60)
    assert reads > CHANGES
    assert seen <= written
    assert all(text.count(b"host") >= 1 and text.endswith(b".\n") for text in seen)
