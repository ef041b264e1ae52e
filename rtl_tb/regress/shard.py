"""One shard of a regression: some vectors of one unit, engine, mix of kinds and seed. A worker runs it and
hands back counters and its first failures.
"""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from golden.boundary import internal_error
from golden.errors import MmagoldError
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check
from rtl_tb.dut.description import load_dut
from rtl_tb.errors import RtlError
from rtl_tb.regress.fingerprints import code_digest, simulator_digest, unit_state

Result = dict[str, Any]


@dataclass(frozen=True)
class Shard:
    """Vectors number `first` to `first + count - 1` of a seed's stream, for a unit behind an engine.

    Attributes:
        unit: the unit's name in the regression; `file` is its dut.yaml.
        mix: name of the kinds; `weights` their shares, None: the default mix.
        settings: traffic and limits, as rtl_tb.check.check.Options takes them.
        unit_digest, simulator_digest, code: what the result depends on (rtl_tb/regress/fingerprints.py).
        listed: whether they are all that it depends on, so that the result may be used again.
    """

    unit: str
    file: str
    engine: str
    simulator: str
    mix: str
    weights: Mapping[str, float] | None
    seed: int
    first: int
    count: int
    settings: Mapping[str, Any]
    unit_digest: str
    simulator_digest: str
    code: str
    listed: bool

    @property
    def key(self) -> str:
        """Names the result. Where the unit lies is no part of it."""
        what = {name: value for name, value in asdict(self).items() if name not in _NO_PART}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def group(self) -> tuple[str, str, str]:
        """Shards of one group run the same program."""
        return self.unit, self.engine, self.simulator

    def options(self, build: Path) -> Options:
        """The check that the shard is."""
        drawn: dict[str, Any] = {
            "count": self.count,
            "seed": self.seed,
            "first": self.first,
            "weights": self.weights,
        }
        return Options(self.engine, self.simulator, **drawn, **self.settings, build=build)


_NO_PART = ("file", "listed")


def run_shard(shard: Shard, build: str) -> Result:
    """Runs a shard; what could not be run has the key `error` alone. Never raises but on interrupts."""
    start = time.monotonic()
    try:
        result = _checked(shard, Path(build), explain=False)
        found = _counters(shard, result)
    except MmagoldError as error:
        return {"error": " ".join(str(error).split())}
    except Exception as error:
        return {"error": internal_error(error)}
    return found | {"seconds": round(time.monotonic() - start, 3)}


def explain_shard(shard: Shard, build: str, failures: str) -> Result:
    """Repeats a failed shard and finds why it fails, with a capsule; only `error` if it could not run.

    Whether it fails again is part of the answer: {"passed": ..., "report": ...}.
    """
    try:
        result = _checked(shard, Path(build), explain=True, failures=Path(failures))
    except MmagoldError as error:
        return {"error": " ".join(str(error).split())}
    except Exception as error:
        return {"error": internal_error(error)}
    return {"passed": result.passed, "report": result.as_dict()}


def _checked(shard: Shard, build: Path, explain: bool, failures: Path | None = None) -> Check:
    """Runs the check, and makes sure that it was of what the shard says."""
    if (code_digest(), simulator_digest(shard.simulator)) != (shard.code, shard.simulator_digest):
        raise RtlError(
            f"{socket.gethostname()} has another mmagold, or another {shard.simulator}, Icarus, Verilator or "
            "Yosys, than the machine that started the regression; all need the same"
        )
    before = unit_state(load_dut(shard.file), shard.simulator)
    options = replace(shard.options(build), explain=explain, failures=failures)
    result = check(shard.file, options) if before.digest == shard.unit_digest else None
    if (
        result is None
        or before.inputs.changed()
        or unit_state(result.dut, shard.simulator).digest != shard.unit_digest
    ):
        raise RtlError(f"{shard.file}: a file of the unit was changed while the regression ran; run it again")
    code_digest()  # raises where ours were changed meanwhile
    if result.drawn != shard.count:
        raise RtlError(f"{shard.file}: {result.drawn} vectors were drawn, expected {shard.count}")
    return result


def _counters(shard: Shard, result: Check) -> Result:
    """The result of a shard as plain values: counters, and the first failures."""
    report, verdict = result.as_dict(), result.verdict
    kept = (
        "passed",
        "wrong",
        "unknown",
        "missing",
        "kinds",
        "unset",
        "notes",
        "version",
        "latency",
        "cycles",
    )
    # The first failing vectors, with operands: enough to explain them without another run.
    # Failing vectors, and failures of the handshake, that a result lists.
    first_failures = 4
    failing = np.flatnonzero(verdict.failed)[:first_failures]
    return {
        **{key: report[key] for key in kept},
        "vectors": shard.count,
        "judged": report["vectors"],
        "protocol": report["protocol"][:first_failures],
        "handshake_failures": len(report["protocol"]),
        "first_failures": [_failure(result, int(vector)) for vector in failing],
        "repeat": result.command,
        "coverage": None if result.coverage is None else result.coverage.as_dict(),
        "host": socket.gethostname(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _failure(result: Check, vector: int) -> dict[str, Any]:
    """One failing vector: the codes of the operands of a dot product, what was expected and what came."""
    verdict = result.verdict
    vectors, outcome = verdict.vectors, verdict.outcome
    element = verdict.wrong_element(vector, result.dut.compare)
    digits = (vectors.instruction.formats["d"].bits + 3) // 4
    came = int(outcome.actual.reshape(len(vectors), -1)[vector, element])
    answer = (
        "never" if verdict.missing[vector] else "X" if verdict.unknown[vector] else f"{came:#0{digits + 2}x}"
    )
    expected = int(vectors.d.reshape(len(vectors), -1)[vector, element])
    operands = {name: codes[vector].reshape(-1).tolist() for name, codes in vectors.operands.items()}
    return {
        "vector": vector,
        "element": element,
        "expected": f"{expected:#0{digits + 2}x}",
        "actual": answer,
        "operands": operands if vectors.level == "dot" else {},
    }
