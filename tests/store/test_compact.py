"""lavactl compact: a file becomes smaller beside a writer that goes on; one of an earlier version while none runs."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lavad.maintenance import compact
from lavad.maintenance.main import main
from lavad.store.errors import StoreRefused
from lavad.store.store import Store
from lavad.store.writer.batch import Batch

ROWS, SIZE = 2000, 4000


def environments(first: int, count: int, size: int = SIZE) -> Batch:
    """Rows of that many bytes each."""
    batch = Batch()
    for number in range(first, first + count):
        key = number.to_bytes(8, "big")
        batch.environments[key] = (key, os.urandom(size))
    return batch


def removal(count: int) -> Batch:
    """The removal of the first rows."""
    batch = Batch()
    batch.environments = {number.to_bytes(8, "big"): None for number in range(count)}
    return batch


async def filled(path: Path) -> Store:
    """An open store most of whose rows have been removed again."""
    store = await Store.open(str(path), pytest.fail)
    for batch in (environments(0, ROWS), removal(ROWS - 100)):
        store.append(batch, lambda: None)
        await store.flush()
    return store


def size(path: Path) -> int:
    """Bytes of the file when the log has been taken over."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return path.stat().st_size


def rows(path: Path) -> int:
    """Rows that are left."""
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM environments").fetchone()
    return int(count)


async def compacted(path: Path) -> tuple[Store, int]:
    """The store, with rows that were committed while the file was compacted."""
    store = await filled(path)
    working = asyncio.create_task(asyncio.to_thread(lambda: list(compact.run(str(path)))))
    written = 0
    while not working.done():
        store.append(environments(ROWS + written, 1, size=10), lambda: None)
        await store.flush()
        written += 1
    (line,) = await working
    assert line.startswith(f"{path}: ")
    return store, written


def test_the_writer_goes_on_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits succeed between the steps, nothing is lost, and the room of what was removed is given back."""
    monkeypatch.setattr(compact, "STEP_PAGES", 20)
    path = tmp_path / "lava.db"

    async def live() -> int:
        store, written = await compacted(path)
        await store.close()
        return written

    written = asyncio.run(live())
    assert written > 2
    assert rows(path) == 100 + written
    assert size(path) < ROWS * SIZE / 4 + 100 * written


def test_a_step_frees_as_many_pages_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver ends this statement after its first page, if it is asked in the plain way: an hour a gigabyte."""
    path, pauses = tmp_path / "lava.db", list[float]()
    monkeypatch.setattr(compact.time, "sleep", pauses.append)

    async def live() -> None:
        store = await filled(path)
        list(compact.run(str(path)))
        await store.close()

    asyncio.run(live())
    assert 1 <= len(pauses) <= ROWS * 2 * SIZE / 4096 / compact.STEP_PAGES + 1


def as_of_an_earlier_version(path: Path) -> None:
    """Make the file one that can't give pages back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum=NONE")
        connection.execute("VACUUM")


def test_an_older_file_is_written_anew_while_no_lavad_runs(tmp_path: Path) -> None:
    """With a running one a sentence says what to do; afterwards it is a file that can give pages back."""
    path = tmp_path / "lava.db"

    async def fill() -> None:
        await (await Store.open(str(path), pytest.fail)).close()
        as_of_an_earlier_version(path)
        store = await filled(path)
        with pytest.raises(StoreRefused, match="systemctl stop lavad; lavactl compact; systemctl start lavad"):
            list(compact.run(str(path)))
        await store.close()

    asyncio.run(fill())
    before = size(path)
    assert len(list(compact.run(str(path)))) == 1
    assert size(path) < before / 4
    assert rows(path) == 100
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_there_has_to_be_room_for_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for before anything is written."""
    path = tmp_path / "lava.db"

    async def make() -> None:
        await (await Store.open(str(path), pytest.fail)).close()

    asyncio.run(make())
    as_of_an_earlier_version(path)
    monkeypatch.setattr(compact.shutil, "disk_usage", lambda _path: _NoRoom())
    with pytest.raises(StoreRefused, match="MiB of free room are needed"):
        list(compact.run(str(path)))


class _NoRoom:
    free = 1000


@pytest.mark.parametrize(("where", "sentence"), [
    ("postgresql://lava@/lava", "PostgreSQL uses the room of purged rows again by itself."),
    ("/nowhere/lava.db", "/nowhere/lava.db does not exist."),
])  # fmt: skip
def test_what_cannot_be_compacted_is_told(
    tmp_path: Path, where: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a sentence, with a failing exit code."""
    (tmp_path / "lava.conf").write_text(
        f"LAVA_LISTEN=x:1\nLAVA_ENROL_LISTEN=x:2\nLAVA_STATE_DIR={tmp_path}\nLAVA_DATABASE={where}\n"
    )
    assert main(["compact", "--conf", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(sentence)
