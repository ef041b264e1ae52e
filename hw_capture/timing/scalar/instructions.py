"""Which scalar PTX instructions are timed: names by theme; the list of PTX forms has their operands.

The list holds every row of Table V of H. Abdelkhalik et al. (arXiv 2208.11174) that ptxas 13.0 takes, and the
instructions around them. `bar.warp.sync` gives no result and can be timed only in one warp, next to itself;
`mov.u32 %clock` has a kernel of its own (`paper`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from golden.catalog import ptx_forms
from golden.catalog.ptx_forms import Form

PREDICATE = 1
_LIST: dict[str, str] = {
    "add and subtract": (
        "add.u16 add.s16 sub.u16 sub.s16 add.f16 sub.f16 add.bf16 sub.bf16 add.u32 add.s32 addc.u32 "
        "add.sat.s32 sub.u32 sub.s32 add.f32 add.ftz.f32 add.rz.f32 add.sat.f32 sub.f32 add.f16x2 "
        "sub.f16x2 add.bf16x2 add.u64 add.s64 sub.u64 sub.s64 add.f64 sub.f64"
    ),
    "multiply": (
        "mul.lo.u16 mul.lo.s16 mul.hi.u16 mul.rn.f16 mul.bf16 mul.lo.u32 mul.lo.s32 mul.hi.u32 "
        "mul.hi.s32 mul24.lo.u32 mul24.lo.s32 mul24.hi.u32 mul24.hi.s32 mul.rn.f32 mul.ftz.f32 "
        "mul.rn.f16x2 mul.bf16x2 mul.lo.u64 mul.hi.u64 mul.hi.s64 mul.rn.f64 mul.wide.u16 "
        "mul.wide.s16 mul.wide.u32 mul.wide.s32"
    ),
    "multiply and add": (
        "mad.lo.u16 mad.lo.s16 fma.rn.f16 fma.rn.relu.f16 fma.rn.bf16 mad.lo.u32 mad.lo.s32 "
        "mad.hi.u32 mad24.lo.u32 mad24.hi.u32 mad.rn.f32 fma.rn.f32 fma.rn.ftz.f32 fma.rz.f32 "
        "fma.rn.sat.f32 fma.rn.f16x2 fma.rn.bf16x2 fma.rn.relu.bf16x2 mad.lo.u64 mad.rn.f64 "
        "fma.rn.f64 fma.rz.f64 mad.wide.u32 mad.wide.s32"
    ),
    "dot products of bytes": "dp4a.u32.u32 dp4a.s32.s32 dp2a.lo.u32.u32 dp2a.hi.s32.s32",
    "sum of differences": "sad.u16 sad.s16 sad.u32 sad.s32 sad.u64 sad.s64",
    "divide": (
        "div.u16 div.s16 rem.u16 rem.s16 div.u32 div.s32 rem.u32 rem.s32 div.rn.f32 div.approx.f32 "
        "div.full.f32 div.u64 div.s64 rem.u64 rem.s64 div.rn.f64"
    ),
    "sign": (
        "abs.s16 neg.s16 abs.f16 neg.f16 abs.s32 neg.s32 abs.f32 abs.ftz.f32 neg.f32 abs.f16x2 "
        "neg.f16x2 abs.s64 neg.s64 abs.f64 neg.f64 copysign.f32 copysign.f64"
    ),
    "minimum and maximum": (
        "min.u16 min.s16 max.u16 max.s16 min.f16 max.f16 min.bf16 min.u32 min.s32 max.u32 max.s32 "
        "min.f32 max.f32 min.NaN.f32 min.f16x2 max.bf16x2 max.u16x2 max.s16x2 min.u64 min.s64 max.u64 "
        "max.s64 min.f64 max.f64 viaddmax.s32 viaddmin.u32"
    ),
    "logic": (
        "and.b16 or.b16 xor.b16 and.b32 or.b32 xor.b32 and.b64 or.b64 xor.b64 not.b16 cnot.b16 "
        "not.b32 cnot.b32 not.b64 cnot.b64 lop3.b32 prmt.b32"
    ),
    "shift": (
        "shl.b16 shr.u16 shr.s16 shl.b32 shr.u32 shr.s32 shl.b64 shr.u64 shr.s64 shf.l.wrap.b32 "
        "shf.l.clamp.b32 shf.r.wrap.b32 shf.r.clamp.b32"
    ),
    "bit fields": (
        "brev.b32 popc.b32 clz.b32 bfind.u32 bfind.s32 bfind.shiftamt.u32 brev.b64 popc.b64 clz.b64 "
        "bfind.u64 bfind.s64 bfe.u32 bfe.s32 fns.b32 bfe.u64 bfe.s64 bfi.b32 bfi.b64 bmsk.clamp.b32 "
        "szext.clamp.u32"
    ),
    "functions": (
        "sqrt.rn.f32 sqrt.approx.f32 sqrt.approx.ftz.f32 rsqrt.approx.f32 rsqrt.approx.ftz.f32 "
        "rcp.rn.f32 rcp.approx.f32 rcp.approx.ftz.f32 ex2.approx.f32 ex2.approx.ftz.f32 "
        "lg2.approx.f32 lg2.approx.ftz.f32 sin.approx.f32 cos.approx.f32 tanh.approx.f32 "
        "tanh.approx.f16x2 ex2.approx.f16x2 tanh.approx.f16 ex2.approx.f16 tanh.approx.bf16 "
        "ex2.approx.ftz.bf16 sqrt.rn.f64 rsqrt.approx.f64 rcp.rn.f64 rcp.approx.ftz.f64"
    ),
    "compare and select": (
        "setp.ne.s32 setp.lt.u32 setp.lt.f32 setp.lt.u16 setp.lt.f16 setp.ne.s64 setp.lt.u64 "
        "setp.lt.f64 testp.normal.f32 testp.subnor.f32 testp.normal.f64 testp.subnor.f64 "
        "set.ne.u32.s32 set.lt.f32.f32 slct.u32.s32 selp.b32 selp.b64"
    ),
    "convert": (
        "cvt.rzi.s32.f32 cvt.rzi.u32.f32 cvt.rn.f32.s32 cvt.rn.f32.u32 cvt.rni.f32.f32 "
        "cvt.rmi.f32.f32 cvt.rna.tf32.f32 cvt.sat.s8.s32 cvt.s32.s8 cvt.rzi.s64.f64 cvt.rn.f64.s64 "
        "cvt.rni.f64.f64 cvt.f64.f32 cvt.rn.f64.s32 cvt.rzi.s64.f32 cvt.s64.s32 cvt.rn.f32.f64 "
        "cvt.rzi.s32.f64 cvt.rn.f32.s64 cvt.rn.f16.f32 cvt.rn.bf16.f32 cvt.rzi.s16.f32 cvt.f32.f16 "
        "cvt.rzi.s32.f16 cvt.rn.f32.s16 cvt.rzi.s16.f16 cvt.rn.f16.s16 cvt.rn.f16x2.f32 "
        "cvt.rn.bf16x2.f32 cvt.pack.sat.s16.s32 cvt.rn.satfinite.e4m3x2.f32 cvt.rn.f16x2.e4m3x2 "
        "cvt.rn.f16x2.e5m2x2"
    ),
    "video": "vadd4.s32.s32.s32 vabsdiff4.u32.u32.u32 vmax2.s32.s32.s32 vadd.s32.s32.s32 vmin.s32.s32.s32",
    "warp": (
        "shfl.sync.idx.b32 shfl.sync.bfly.b32 shfl.sync.up.b32 vote.sync.ballot.b32 "
        "match.any.sync.b32 redux.sync.add.u32 redux.sync.min.u32 redux.sync.xor.b32 bar.warp.sync"
    ),
}
"""The instructions by theme; operands and text are those of golden.catalog.ptx_forms, but for _OWN."""
_OWN: dict[str, tuple[int, tuple[int, ...], str]] = {
    "addc.u32": (32, (32, 32), "add.cc.u32 {t}, {a}, {b}; addc.u32 {d}, {a}, {b};"),
    "viaddmax.s32": (32, (32, 32, 32), "add.s32 {t}, {a}, {b}; max.s32 {d}, {t}, {c};"),
    "viaddmin.u32": (32, (32, 32, 32), "add.u32 {t}, {a}, {b}; min.u32 {d}, {t}, {c};"),
    "lop3.b32": (32, (32, 32, 32), "lop3.b32 {d}, {a}, {b}, {c}, 0x96;"),
    "testp.subnor.f32": (1, (32,), "testp.subnormal.f32 {d}, {a};"),
    "testp.subnor.f64": (1, (64,), "testp.subnormal.f64 {d}, {a};"),
    "set.ne.u32.s32": (32, (32, 32), "set.ne.u32.s32 {d}, {a}, {b};"),
    "cvt.sat.s8.s32": (32, (32,), "cvt.sat.s8.s32 {d}, {a};"),
    "cvt.s32.s8": (32, (32,), "cvt.s32.s8 {d}, {a};"),
    "cvt.rn.satfinite.e4m3x2.f32": (16, (32, 32), "cvt.rn.satfinite.e4m3x2.f32 {d}, {a}, {b};"),
    "cvt.rn.f16x2.e4m3x2": (32, (16,), "cvt.rn.f16x2.e4m3x2 {d}, {a};"),
    "cvt.rn.f16x2.e5m2x2": (32, (16,), "cvt.rn.f16x2.e5m2x2 {d}, {a};"),
    "shfl.sync.idx.b32": (32, (32,), "shfl.sync.idx.b32 {d}, {a}, 5, 31, -1;"),
    "shfl.sync.bfly.b32": (32, (32,), "shfl.sync.bfly.b32 {d}, {a}, 1, 31, -1;"),
    "shfl.sync.up.b32": (32, (32,), "shfl.sync.up.b32 {d}, {a}, 1, 0, -1;"),
    "vote.sync.ballot.b32": (32, (32,), "setp.ne.u32 %pv, {a}, 0; vote.sync.ballot.b32 {d}, %pv, -1;"),
    "match.any.sync.b32": (32, (32,), "match.any.sync.b32 {d}, {a}, -1;"),
    "redux.sync.add.u32": (32, (32,), "redux.sync.add.u32 {d}, {a}, -1;"),
    "redux.sync.min.u32": (32, (32,), "redux.sync.min.u32 {d}, {a}, -1;"),
    "redux.sync.xor.b32": (32, (32,), "redux.sync.xor.b32 {d}, {a}, -1;"),
    "bar.warp.sync": (0, (), "bar.warp.sync -1;"),
}
"""Widths of result and sources, and text, of what is chained in another way than a form writes it: immediates
in place of registers, bytes in words, two instructions. `viaddmax` and `viaddmin` are no PTX, but what ptxas
fuses of two instructions (DPX)."""
_QUOTIENTS = re.compile(r"div\.")
"""Their chains run through the divisor: a quotient of a quotient would be 0, and a float leave the range in
which no subroutine is called."""
_PRODUCTS = re.compile(r"(?:mul|mad|fma)\.(?:.*\.)?(?:bf16|f16|f32|f64)(?:x2)?$")
"""Their chains run through the other factor: a product of many numbers above 1 would leave the range."""
_SIGNS = "slct.u32.s32"
"""Its chain runs through the sign that selects."""


@dataclass(frozen=True)
class Operation:
    """One PTX instruction: widths in bits of the result (0: none, 1: a predicate) and of the sources.

    through: the source that the chain runs through. text: PTX with {d}, {a}, {b}, {c}, {e}, and {t} for a
    register of 32 bits next to them.
    """

    name: str
    theme: str
    result: int
    sources: tuple[int, ...]
    text: str
    through: int = 0

    @property
    def factor(self) -> int | None:
        """The source whose values are reciprocal by turns, or None."""
        return 1 if _PRODUCTS.match(self.name) else None

    @property
    def dividend(self) -> int | None:
        """The source whose value is always the same, or None."""
        return 0 if _QUOTIENTS.match(self.name) else None

    @property
    def data(self) -> str:
        """Format of its operands: "f16", "bf16", "f32", "f64", or "bits"."""
        found = re.findall(r"\b(f16|bf16|f32|f64|tf32)(?:x2)?\b", self.name)
        return str(found[-1]) if found and re.search(r"\.(?:bf16|f16|f32|f64)(?:x2)?$", self.name) else "bits"


def _operation(theme: str, name: str, forms: dict[str, Form]) -> Operation:
    result, sources, text = _OWN[name] if name in _OWN else _of_form(forms[name])
    through = 2 if name == _SIGNS else 1 if _QUOTIENTS.match(name) else 0
    return Operation(name, theme, result, sources, text, through)


def _of_form(form: Form) -> tuple[int, tuple[int, ...], str]:
    """Widths of result and sources, and the text with their places."""
    result, *_ = (*map(_width, form.outputs), 0)
    return result, tuple(map(_width, form.inputs)), re.sub(r"\$([a-z]\d?)\b", r"{\1}", form.body) + ";"


def _width(kind: str) -> int:
    """Bits of a register of a PTX type: 32 of "f16x2"."""
    if kind == "pred":
        return PREDICATE
    found = re.fullmatch(r"[a-z]+(\d+)(x2)?", kind)
    assert found, kind  # the types of the forms that the list names
    return int(found.group(1)) * (2 if found.group(2) else 1)


@cache
def operations() -> tuple[Operation, ...]:
    """Every instruction of the list.

    Raises:
        SpecError: spec/ptx/scalar.yaml is wrong.
    """
    forms = {form.name: form for form in ptx_forms.load().forms}
    return tuple(_operation(theme, name, forms) for theme, names in _LIST.items() for name in names.split())


def get(name: str) -> Operation:
    """The operation of that name."""
    return next(operation for operation in operations() if operation.name == name)
