"""The results of a regression on disk: one file for each shard, whole or not there.

    <out>/shards/<key>.json      counters and first failures of a shard
    <out>/reasons/<key>.json     the whole report of one that failed

The key stands for all that the result depends on, and each file for itself: one that is damaged, edited or of
another shard is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from golden.files.lock import only_writer
from golden.files.output import made_folder
from golden.workers.results import Results
from rtl_tb.regress.shard import Result, Shard

FORMAT = "mmagold regression shard 1"


class Store:
    """The results in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shards, self._reasons = (Results(folder / kind, FORMAT) for kind in ("shards", "reasons"))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Makes the folder, and keeps other regressions out of it.

        Raises:
            FileFormatError: it cannot be made, or another regression writes there.
        """
        with (
            made_folder(self.folder / "shards"),
            made_folder(self.folder / "reasons"),
            only_writer(self.folder, self.folder / ".lock"),
        ):
            yield

    def get(self, shard: Shard) -> Result | None:
        """The result of a shard, or None where there is none that holds."""
        return self._shards.get(shard.key) if shard.listed else None

    def put(self, shard: Shard, result: Result) -> None:
        """Keeps a result; what could not be run is none."""
        self._shards.put(shard.key, result)

    def explained(self, shard: Shard) -> Result | None:
        """Why a shard fails; None where that is not known, or its capsule has gone."""
        found = self._reasons.get(shard.key) if shard.listed else None
        capsule = found["report"]["capsule"] if found else None
        return found if capsule is None or Path(capsule).is_dir() else None

    def put_explained(self, shard: Shard, reason: Result) -> None:
        """Keeps why a shard fails."""
        self._reasons.put(shard.key, reason)
