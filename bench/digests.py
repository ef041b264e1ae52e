"""Digests of the results of every distinct program of every architecture, over every stimulus kind.

    python bench/digests.py [--count 64] > before.json

Two versions of the model that print the same text gave the same bits. Operands have digests of their own,
so that a changed stimulus does not look like changed arithmetic. Programs that are the same in everything
that decides results are run once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import zlib

import numpy as np

import golden
from golden import stimuli
from golden.model.instruction import Instruction


def digest(ins: Instruction, count: int) -> dict[str, str]:
    """The digests of operands and results, over all stimulus kinds."""
    given, answered = hashlib.sha256(), hashlib.sha256()
    for kind in stimuli.KINDS:
        operands = stimuli.generate(ins, kind, count, np.random.default_rng(zlib.crc32(kind.encode())))
        for name in sorted(operands):
            given.update(np.ascontiguousarray(operands[name]).tobytes())
        answered.update(np.ascontiguousarray(ins.dot(**operands)).tobytes())
    return {"operands": given.hexdigest()[:16], "results": answered.hexdigest()[:16]}


def main() -> None:
    """Prints the digests as JSON, by architecture and the first name of each program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=64)
    count = parser.parse_args().count
    found: dict[str, dict[str, dict[str, str]]] = {}
    for architecture in golden.architectures():
        seen: set[str] = set()
        rows = found.setdefault(architecture, {})
        for ins in golden.instructions(architecture):
            key = repr(
                ([operation.arithmetic for operation in ins.program.operations], ins.formats, ins.sparse)
            )
            if key not in seen:
                seen.add(key)
                rows[ins.name] = digest(ins, count)
        print(f"{architecture}: {len(rows)} programs", file=sys.stderr)
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
