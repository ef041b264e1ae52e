"""The requests of `mmagold bench-gpu`."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """Architecture, number of the GPU, runs of each point, and the files to write."""

    arch: str
    gpu: int
    runs: int
    out: Path | None
    csv: Path | None

    def write(self, yaml_text: str, csv_text: str) -> None:
        """Writes the requested files, each whole or not at all; compressed where the name ends
        with .gz."""
        from golden.files.output import write_whole

        def write(path: Path | None, text: str) -> None:
            if path is not None:
                data = text.encode()
                content = gzip.compress(data, mtime=0) if path.suffix == ".gz" else data
                write_whole(path, lambda stream: stream.write(content))

        write(self.out, yaml_text)
        write(self.csv, csv_text)
