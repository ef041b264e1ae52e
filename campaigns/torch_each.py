"""erf, exp, gelu, sigmoid, silu and tanh of PyTorch over all words, on a GPU and by golden: equal bits?

python campaigns/torch_each.py --record FILE.json
python campaigns/torch_each.py --compare FILE.json

The first needs a GPU and PyTorch. All words of f16 and bf16, and `--blocks` of 2^16 words of f32.
For docs/reports/torch-h200.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from golden.files.inputs import read_json
from golden.files.output import write_text
from hw_capture.products.torch_each import differences, record


def main() -> int:
    """Exit status 1: a bit differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--blocks", type=int, default=256)
    given = parser.parse_args()
    if given.record:
        write_text(given.record, json.dumps(record(given.blocks)) + "\n")
        return 0
    if given.compare:
        found = list(differences(read_json(given.compare), given.blocks))
        print("\n".join(found) or "no bit differs")
        return 1 if found else 0
    parser.error("expected --record or --compare")


if __name__ == "__main__":
    raise SystemExit(main())
