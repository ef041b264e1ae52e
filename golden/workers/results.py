"""Results of shards on disk: one JSON file each, whole or not there, under a key that stands for all that it
depends on. One that is damaged, edited or of another shard is none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from golden.errors import FileFormatError
from golden.files.inputs import read_json
from golden.files.output import write_text

Result = dict[str, Any]


class Results:
    """The results in a folder; `form` names their format and its version."""

    def __init__(self, folder: Path, form: str) -> None:
        self.folder, self.form = folder, form

    def get(self, key: str) -> Result | None:
        """The result under a key; None where there is none that holds."""
        try:
            found = read_json(self._file(key))
        except FileFormatError:
            return None
        if not isinstance(found, dict) or found.get("format") != self.form or found.get("key") != key:
            return None
        result = found.get("result")
        if not isinstance(result, dict) or found.get("digest") != self._digest(key, result):
            return None
        return result

    def put(self, key: str, result: Result) -> None:
        """Keeps a result; what could not be run (key `error`) is none."""
        if "error" in result:
            raise ValueError("an error is no result")
        found = {"format": self.form, "key": key, "digest": self._digest(key, result), "result": result}
        write_text(self._file(key), json.dumps(found) + "\n")

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _digest(self, key: str, result: Mapping[str, Any]) -> str:
        text = f"{self.form} {self.folder.name} {key} {json.dumps(result, sort_keys=True)}"
        return hashlib.sha256(text.encode()).hexdigest()
