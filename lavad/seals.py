"""Seals by which a master knows its own word again when a host brings it: what was staged there, for whom and where.

A database that lost commits is filled from what hosts tell. A host that was taken over could tell of jobs of any user
that never were; it has no key, though, and so it can bring only what a master of this cluster once gave to it. The key
comes from that of the authority, which every master of the cluster has and no host: it outlives any database.
"""

import hmac
from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from lavad.commitmark import Mark
from lavad.core.model import Key
from protos.agents_pb2 import CommitMark, JobSpecBlob, Stage
from protos.authority import Authority
from protos.common_pb2 import HostShare

_PURPOSE = b"lava: what a master stages"


class Seals:
    """Makes seals and checks them."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def of(cls, directory: Path) -> "Seals":
        """Of the cluster whose authority is in this directory.

        Raises:
            TrustError: the authority cannot be used.
        """
        private = Authority.load(directory / "ca").key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return cls(hmac.digest(private, _PURPOSE, "sha256"))

    def seal_spec(self, blob: JobSpecBlob) -> None:
        """Seal a job's description: its number, owner, queue and all that was submitted."""
        blob.seal = self._of_spec(blob)

    def seal_stage(self, key: Key, stage: Stage) -> None:
        """Seal what one attempt is staged with."""
        stage.seal, stage.allocation_seal = self._of_stage(key, stage), self.of_allocation(key, stage.allocation)

    def of_allocation(self, key: Key, allocation: Iterable[HostShare]) -> bytes:
        """The seal of the hosts that one attempt has."""
        return self._seal(b"allocation %d %d %d " % key, Stage(allocation=allocation))

    def of_mark(self, mark: Mark) -> bytes:
        """The seal of how far the database has come."""
        database, term, batch, next_job = mark
        return self._seal(b"mark ", CommitMark(database=database, term=term, batch=batch, next_job=next_job))

    def is_own_mark(self, mark: Mark, seal: bytes) -> bool:
        """Whether a master of this cluster has said that its database had come so far."""
        return hmac.compare_digest(seal, self.of_mark(mark))

    def is_own_spec(self, blob: JobSpecBlob) -> bool:
        """Whether a master of this cluster wrote this description."""
        return hmac.compare_digest(blob.seal, self._of_spec(blob))

    def is_own_stage(self, key: Key, stage: Stage) -> bool:
        """Whether a master of this cluster staged this attempt, with these terms and on these hosts."""
        is_allocated = hmac.compare_digest(stage.allocation_seal, self.of_allocation(key, stage.allocation))
        return is_allocated and hmac.compare_digest(stage.seal, self._of_stage(key, stage))

    def _of_spec(self, blob: JobSpecBlob) -> bytes:
        bare = JobSpecBlob()
        bare.CopyFrom(blob)
        bare.seal = b""
        return self._seal(b"spec ", bare)

    def _of_stage(self, key: Key, stage: Stage) -> bytes:
        bare = Stage()
        bare.CopyFrom(stage)
        bare.seal = bare.allocation_seal = b""
        del bare.allocation[:]
        return self._seal(b"stage %d %d %d " % key, bare)

    def _seal(self, kind: bytes, message: CommitMark | JobSpecBlob | Stage) -> bytes:
        return hmac.digest(self._key, kind + message.SerializeToString(deterministic=True), "sha256")
