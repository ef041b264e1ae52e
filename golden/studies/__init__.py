"""Studies: findings about matrix units as runnable experiments on the models, compared with the printed
figures of the papers.

    study = studies.run("cdna3-rounding")
    print(study.findings)

Each module holds one study, `run(samples, progress)`, whose default is the number of samples (1 where nothing
is random). Its title, question, source
and findings are in golden/templates/studies.
`study` says what comes out, and reads the printed numbers, `units` names the units and feeds them,
`draw` is the style of the figures, `write` makes files. Operands come from NumPy generators with fixed seeds,
so a study always gives the same numbers. Like the command line this stands at the end of the flow: nothing
imports it but the command line and the pages.
"""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from types import ModuleType

from golden.errors import OperandError, UnknownNameError, nearest
from golden.identify.blackbox.plugins import Chip
from golden.studies.study import Progress, Study, words_of
from golden.vectors.vectorset import MOST_AT_ONCE

_MODULES = {
    "fp8-accumulation": "fp8_accumulation",
    "accumulation-precision": "accumulation_precision",
    "cdna2-range": "cdna2_range",
    "product-overflow": "product_overflow",
    "cdna3-rounding": "cdna3_rounding",
    "tf32-nan": "tf32_nan",
    "summation-order": "summation_order",
    "repeatability": "repeatability",
    "properties": "properties",
    "consistency": "consistency",
    "numeric-profile": "numeric_profile",
    "as-published": "as_published",
    "overflow-edges": "overflow_edges",
    "observations": "observations",
    "adder-width": "adder_width",
}


def names() -> tuple[str, ...]:
    """The studies, in the order of the paper's findings."""
    return tuple(_MODULES)


def run(
    name: str, samples: int | None = None, progress: Progress | None = None, chip: Chip | None = None
) -> Study:
    """Runs a study.

    Args:
        name: one of `names()`.
        samples: random samples of each experiment, by default what takes a few seconds.
        progress: called as progress(done, total).
        chip: runs what the models of its architecture run (golden/identify/blackbox/plugins.py).

    Raises:
        UnknownNameError: no such study. OperandError: samples below 1, or too many to be held in memory; a
            chip for a study that asks none.
    """
    module = _module(name)
    if samples is not None and not 1 <= samples <= MOST_AT_ONCE:
        raise OperandError(f"samples is {samples}, expected 1 to {MOST_AT_ONCE}")
    count = default_samples(name) if samples is None else samples
    if chip is not None and not asks_chips(name):
        asking = ", ".join(filter(asks_chips, names()))
        raise OperandError(f"the study {name} computes with models alone, expected one that asks: {asking}")
    study: Study = module.run(count, progress or _silent, *([] if chip is None else [chip]))
    return study


def asks_chips(name: str) -> bool:
    """Whether a study can ask a chip, too."""
    return "chip" in signature(_module(name).run).parameters


def title(name: str) -> str:
    """The study's title."""
    return words_of(_known(name)).title


def question(name: str) -> str:
    """The question that it answers, one sentence."""
    return words_of(_known(name)).question


def source(name: str) -> str:
    """The paper and section that it follows."""
    return words_of(_known(name)).source


def default_samples(name: str) -> int:
    """Samples of each experiment by default."""
    return int(signature(_module(name).run).parameters["samples"].default)


def _known(name: str) -> str:
    if name not in _MODULES:
        raise UnknownNameError(
            f"unknown study '{name}', expected one of {', '.join(_MODULES)}{nearest(name, _MODULES)}"
        )
    return name


def _module(name: str) -> ModuleType:
    return import_module(f"golden.studies.{_MODULES[_known(name)]}")


def _silent(done: int, total: int) -> None:
    """No progress is shown."""
