"""Scalar PTX compiled by this machine's ptxas: forms that cannot be fooled, and the recorded tables."""

from __future__ import annotations

from collections import Counter

import pytest
from long_run import long_after

from golden.catalog import ptx_forms, sass
from golden.catalog.ptx_forms import Form
from golden.catalog.sass import Table
from hw_capture.errors import CompileError
from hw_capture.kernels import toolchain
from hw_capture.kernels.isolate import translate
from hw_capture.timing.scalar import checking, programs
from hw_capture.timing.scalar.instructions import operations

SLICE = (
    "mad.lo.u32",
    "add.u64",
    "setp.lt.and.f32",
    "div.u64",
    "shfl.sync.idx.b32",
    "fma.rn.bf16",
    "cvt.rn.f16.s8",
)


@pytest.fixture
def ptxas(nvcc: None) -> str:
    """The path of ptxas; skips where it is missing."""
    found = toolchain.find("ptxas")
    if found is None or toolchain.find("nvdisasm") is None:
        pytest.skip("ptxas or nvdisasm is not installed: no PTX is compiled")
    return found


def _form(name: str, body: str, kinds: tuple[str, ...] = ("rr",), type_: str = "u32") -> Form:
    return Form(name, "test", (type_,), (type_,) * len(kinds[0]), body, kinds, ("5",) * len(kinds[0]))


def _translated(target: str, *forms: Form) -> Table:
    return translate(ptx_forms.load(), target, forms)


def test_a_fold_is_a_row_without_instructions_and_a_constant_is_no_row(ptxas: str) -> None:
    table = _translated(
        "sm_90a",
        _form("plain", "xor.b32 $d, $a, $b", ("rr", "ri")),
        _form("copy", "add.u32 $d, $a, 0; mul.lo.u32 $d, $d, 1; and.b32 $b, $b, $b", ("rr",)),
        _form("itself", "xor.b32 $d, $a, $a; and.b32 $b, $b, $b", ("rr",)),
        _form("nothing", "mul.lo.u32 $d, $a, $b", ("rz",)),
        _form("lost", "mul.lo.u32 $d, $a, $b; mov.b32 $d, 9", ("rr",)),
    )
    assert {name: row.sass for (name, _), row in table.rows.items()} == {"plain": "LOP3.LUT", "copy": "none"}


def test_a_form_that_only_another_target_has_is_refused_with_the_reason(ptxas: str) -> None:
    forms = [
        form for form in ptx_forms.load().forms if form.name in ("fma.rn.bf16", "tanh.approx.bf16", "add.u32")
    ]
    table = _translated("sm_75", *forms)
    assert {name for name, _ in table.rows} == {"add.u32"}
    assert (
        all("requires .target sm_" in reason for reason in table.refused.values()) and len(table.refused) == 2
    )


@pytest.mark.parametrize(
    "body", ["frobnicate.u32 $d, $a, $b", "add.u32 $d, $a; mov.b32 $b, 1", "add.f33 $d, $a, $b"]
)
def test_a_form_that_is_wrong_is_an_error_and_no_refusal(ptxas: str, body: str) -> None:
    with pytest.raises(CompileError, match=r"wrong \(rr\): ptxas for sm_90a: "):
        _translated("sm_90a", _form("wrong", body))


@pytest.mark.parametrize(
    "target", long_after(2, ["sm_80", "sm_120a", "sm_75", "sm_90a", "sm_100a", "sm_110a"])
)
def test_a_slice_is_as_recorded(ptxas: str, target: str) -> None:
    recorded = sass.load(target)
    if toolchain.version(ptxas) != recorded.ptxas:
        pytest.skip(f"ptxas is {toolchain.version(ptxas)}, the table was made with {recorded.ptxas}")
    forms = [form for form in ptx_forms.load().forms if form.name in SLICE]
    fresh = translate(ptx_forms.load(), target, forms)
    wanted = {key: row for key, row in recorded.rows.items() if key[0] in SLICE}
    assert len(forms) == len(SLICE) and dict(fresh.rows) == wanted


@pytest.mark.long
@pytest.mark.parametrize("target", sass.targets())
def test_a_whole_table_is_as_recorded(ptxas: str, target: str) -> None:
    recorded = sass.load(target)
    if toolchain.version(ptxas) != recorded.ptxas:
        pytest.skip(f"ptxas is {toolchain.version(ptxas)}, the table was made with {recorded.ptxas}")
    assert sass.differences(recorded, translate(ptx_forms.load(), target)) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "mad.lo.u32",
        "popc.b64",
        "cvt.rzi.s32.f32",
        "min.u64",
        "bfe.u32",
        "sqrt.approx.f32",
        "fma.rn.f64",
        "abs.s64",
    ],
)
def test_the_timed_chains_hold_the_same(ptxas: str, name: str) -> None:
    """A second way to isolate: bench-gpu subtracts a kernel without the instruction from one with it."""
    operation = next(one for one in operations() if one.name == name)
    row = sass.load("sm_90a").row(name, "r" * len(operation.sources))
    assert row is not None
    kinds = Counter(checking.kind(part) for part, n in row.counts.items() for _ in range(n))
    alone = Counter(programs.build(operation, "sm_90a").alone)
    del kinds[checking.MOVES], alone[checking.MOVES]
    assert kinds == alone
