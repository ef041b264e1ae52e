"""The results of a regression on disk: one file for each shard, whole or not there.

    <out>/shards/<key>.json      counters and first failures of a shard
    <out>/reasons/<key>.json     the whole report of one that failed

The key stands for all that the result depends on, and each file for itself: one that is damaged, edited or of
another shard is none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from golden.errors import FileFormatError
from golden.files.inputs import read_json
from golden.files.lock import only_writer
from golden.files.output import made_folder, write_text
from rtl_tb.regress.shard import Result, Shard

FORMAT = "mmagold regression shard 1"


class Store:
    """The results in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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
        return self._get("shards", shard)

    def put(self, shard: Shard, result: Result) -> None:
        """Keeps a result; what could not be run is none."""
        self._put("shards", shard, result)

    def explained(self, shard: Shard) -> Result | None:
        """Why a shard fails; None where that is not known, or its capsule has gone."""
        found = self._get("reasons", shard)
        capsule = found["report"]["capsule"] if found else None
        return found if capsule is None or Path(capsule).is_dir() else None

    def put_explained(self, shard: Shard, reason: Result) -> None:
        """Keeps why a shard fails."""
        self._put("reasons", shard, reason)

    def _get(self, kind: str, shard: Shard) -> Result | None:
        if not shard.listed:
            return None
        try:
            found = read_json(self._file(kind, shard))
        except FileFormatError:
            return None
        if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("key") != shard.key:
            return None
        result = found.get("result")
        if not isinstance(result, dict) or found.get("digest") != _digest(kind, shard.key, result):
            return None
        return result

    def _put(self, kind: str, shard: Shard, result: Result) -> None:
        if "error" in result:
            raise ValueError("an error is no result")
        digest = _digest(kind, shard.key, result)
        found = {"format": FORMAT, "key": shard.key, "digest": digest, "result": result}
        write_text(self._file(kind, shard), json.dumps(found) + "\n")

    def _file(self, kind: str, shard: Shard) -> Path:
        return self.folder / kind / f"{shard.key}.json"


def _digest(kind: str, key: str, result: Mapping[str, Any]) -> str:
    return hashlib.sha256(f"{FORMAT} {kind} {key} {json.dumps(result, sort_keys=True)}".encode()).hexdigest()
