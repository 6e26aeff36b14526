"""Seals with which a master verifies its own orders when a host returns them: the job, its owner and its hosts.

A database that lost commits is filled from what hosts report. A compromised host could report jobs of any user that
never existed; without the key, though, it can return only what a master of this cluster once gave it. The key is
derived from that of the cluster's authority, which every master of the cluster has and no host: it outlives any
database. A master keeps it in its state directory, for the time when the authority's key is lost.
"""

import hmac
import secrets
from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from lavad.commit_mark import Mark
from lavad.core.model import Key
from protos.agents_pb2 import CommitMark, JobSpecBlob, Stage
from protos.common_pb2 import HostShare
from protos.trust import tickets
from protos.trust.authority import Authority
from protos.trust.private import PrivateFileError, read_private, write_private

FILE_NAME = "seal-key"
_PURPOSE = b"lava: what a master stages"


class Seals:
    """Maker and verifier of seals."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def of(cls, directory: Path, state_dir: Path) -> "Seals":
        """Load the key of the cluster whose authority is in this directory, or was when the state directory got it.

        A master that has neither begins with a new key: what hosts hold under another one is not believed.

        Raises:
            TrustError: the authority cannot be used.
        """
        path = state_dir / FILE_NAME
        kept = _kept(path)
        if not tickets.why_none_joins(directory):
            private = Authority.load(directory / "ca").key.private_bytes(
                serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            key = hmac.digest(private, _PURPOSE, "sha256")
        else:
            key = kept or secrets.token_bytes(32)
        if key != kept:
            write_private(path, key)
        return cls(key)

    def seal_spec(self, blob: JobSpecBlob) -> None:
        """Seal a job's description: its id, owner, queue and the whole submission."""
        blob.seal = self._of_spec(blob)

    def seal_stage(self, key: Key, stage: Stage) -> None:
        """Seal the stage order of one attempt."""
        stage.seal, stage.allocation_seal = self._of_stage(key, stage), self.of_allocation(key, stage.allocation)

    def of_allocation(self, key: Key, allocation: Iterable[HostShare]) -> bytes:
        """Return the seal of an attempt's hosts."""
        return self._seal(b"allocation %d %d %d " % key, Stage(allocation=allocation))

    def of_mark(self, mark: Mark) -> bytes:
        """Return the seal of a commit mark."""
        database, term, batch, next_job = mark
        return self._seal(b"mark ", CommitMark(database=database, term=term, batch=batch, next_job=next_job))

    def is_own_mark(self, mark: Mark, seal: bytes) -> bool:
        """Return True if a master of this cluster sealed this commit mark."""
        return hmac.compare_digest(seal, self.of_mark(mark))

    def is_own_spec(self, blob: JobSpecBlob) -> bool:
        """Return True if a master of this cluster sealed this description."""
        return hmac.compare_digest(blob.seal, self._of_spec(blob))

    def is_own_stage(self, key: Key, stage: Stage) -> bool:
        """Return True if a master of this cluster staged this attempt, with these parameters and on these hosts."""
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


def _kept(path: Path) -> bytes:
    try:
        return read_private(path)
    except PrivateFileError:
        return b""
