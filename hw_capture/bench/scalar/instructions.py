"""Which scalar PTX instructions are timed: the list, by widths of result and operands.

The list holds every row of Table V of H. Abdelkhalik et al. (arXiv 2208.11174) that ptxas 13.0 takes, and the
instructions around them. `bar.warp.sync` gives no result and can be timed in one warp beside itself alone;
`mov.u32 %clock` has a kernel of its own (`paper`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PREDICATE = 1
_LIST: tuple[tuple[str, str, str], ...] = (
    # theme, "result = sources" in bits (p: a predicate), names
    (
        "add and subtract",
        "16 = 16 16",
        "add.u16 add.s16 sub.u16 sub.s16 add.f16 sub.f16 add.bf16 sub.bf16",
    ),
    (
        "add and subtract",
        "32 = 32 32",
        "add.u32 add.s32 addc.u32 add.sat.s32 sub.u32 sub.s32 add.f32 add.ftz.f32 add.rz.f32 add.sat.f32 "
        "sub.f32 add.f16x2 sub.f16x2 add.bf16x2",
    ),
    ("add and subtract", "64 = 64 64", "add.u64 add.s64 sub.u64 sub.s64 add.f64 sub.f64"),
    ("multiply", "16 = 16 16", "mul.lo.u16 mul.lo.s16 mul.hi.u16 mul.rn.f16 mul.bf16"),
    (
        "multiply",
        "32 = 32 32",
        "mul.lo.u32 mul.lo.s32 mul.hi.u32 mul.hi.s32 mul24.lo.u32 mul24.lo.s32 mul24.hi.u32 mul24.hi.s32 "
        "mul.rn.f32 mul.ftz.f32 mul.rn.f16x2 mul.bf16x2",
    ),
    ("multiply", "64 = 64 64", "mul.lo.u64 mul.hi.u64 mul.hi.s64 mul.rn.f64"),
    ("multiply", "32 = 16 16", "mul.wide.u16 mul.wide.s16"),
    ("multiply", "64 = 32 32", "mul.wide.u32 mul.wide.s32"),
    ("multiply and add", "16 = 16 16 16", "mad.lo.u16 mad.lo.s16 fma.rn.f16 fma.rn.relu.f16 fma.rn.bf16"),
    (
        "multiply and add",
        "32 = 32 32 32",
        "mad.lo.u32 mad.lo.s32 mad.hi.u32 mad24.lo.u32 mad24.hi.u32 mad.rn.f32 fma.rn.f32 fma.rn.ftz.f32 "
        "fma.rz.f32 fma.rn.sat.f32 fma.rn.f16x2 fma.rn.bf16x2 fma.rn.relu.bf16x2",
    ),
    ("multiply and add", "64 = 64 64 64", "mad.lo.u64 mad.rn.f64 fma.rn.f64 fma.rz.f64"),
    ("multiply and add", "64 = 32 32 64", "mad.wide.u32 mad.wide.s32"),
    ("dot products of bytes", "32 = 32 32 32", "dp4a.u32.u32 dp4a.s32.s32 dp2a.lo.u32.u32 dp2a.hi.s32.s32"),
    ("sum of differences", "16 = 16 16 16", "sad.u16 sad.s16"),
    ("sum of differences", "32 = 32 32 32", "sad.u32 sad.s32"),
    ("sum of differences", "64 = 64 64 64", "sad.u64 sad.s64"),
    ("divide", "16 = 16 16", "div.u16 div.s16 rem.u16 rem.s16"),
    (
        "divide",
        "32 = 32 32",
        "div.u32 div.s32 rem.u32 rem.s32 div.rn.f32 div.approx.f32 div.full.f32",
    ),
    ("divide", "64 = 64 64", "div.u64 div.s64 rem.u64 rem.s64 div.rn.f64"),
    ("sign", "16 = 16", "abs.s16 neg.s16 abs.f16 neg.f16"),
    ("sign", "32 = 32", "abs.s32 neg.s32 abs.f32 abs.ftz.f32 neg.f32 abs.f16x2 neg.f16x2"),
    ("sign", "64 = 64", "abs.s64 neg.s64 abs.f64 neg.f64"),
    ("sign", "32 = 32 32", "copysign.f32"),
    ("sign", "64 = 64 64", "copysign.f64"),
    ("minimum and maximum", "16 = 16 16", "min.u16 min.s16 max.u16 max.s16 min.f16 max.f16 min.bf16"),
    (
        "minimum and maximum",
        "32 = 32 32",
        "min.u32 min.s32 max.u32 max.s32 min.f32 max.f32 min.NaN.f32 min.f16x2 max.bf16x2 max.u16x2 "
        "max.s16x2",
    ),
    ("minimum and maximum", "64 = 64 64", "min.u64 min.s64 max.u64 max.s64 min.f64 max.f64"),
    ("minimum and maximum", "32 = 32 32 32", "viaddmax.s32 viaddmin.u32"),
    ("logic", "16 = 16 16", "and.b16 or.b16 xor.b16"),
    ("logic", "32 = 32 32", "and.b32 or.b32 xor.b32"),
    ("logic", "64 = 64 64", "and.b64 or.b64 xor.b64"),
    ("logic", "16 = 16", "not.b16 cnot.b16"),
    ("logic", "32 = 32", "not.b32 cnot.b32"),
    ("logic", "64 = 64", "not.b64 cnot.b64"),
    ("logic", "32 = 32 32 32", "lop3.b32 prmt.b32"),
    ("shift", "16 = 16 32", "shl.b16 shr.u16 shr.s16"),
    ("shift", "32 = 32 32", "shl.b32 shr.u32 shr.s32"),
    ("shift", "64 = 64 32", "shl.b64 shr.u64 shr.s64"),
    ("shift", "32 = 32 32 32", "shf.l.wrap.b32 shf.l.clamp.b32 shf.r.wrap.b32 shf.r.clamp.b32"),
    ("bit fields", "32 = 32", "brev.b32 popc.b32 clz.b32 bfind.u32 bfind.s32 bfind.shiftamt.u32"),
    ("bit fields", "64 = 64", "brev.b64"),
    ("bit fields", "32 = 64", "popc.b64 clz.b64 bfind.u64 bfind.s64"),
    ("bit fields", "32 = 32 32 32", "bfe.u32 bfe.s32 fns.b32"),
    ("bit fields", "64 = 64 32 32", "bfe.u64 bfe.s64"),
    ("bit fields", "32 = 32 32 32 32", "bfi.b32"),
    ("bit fields", "64 = 64 64 32 32", "bfi.b64"),
    ("bit fields", "32 = 32 32", "bmsk.clamp.b32 szext.clamp.u32"),
    (
        "functions",
        "32 = 32",
        "sqrt.rn.f32 sqrt.approx.f32 sqrt.approx.ftz.f32 rsqrt.approx.f32 rsqrt.approx.ftz.f32 rcp.rn.f32 "
        "rcp.approx.f32 rcp.approx.ftz.f32 ex2.approx.f32 ex2.approx.ftz.f32 lg2.approx.f32 "
        "lg2.approx.ftz.f32 sin.approx.f32 cos.approx.f32 tanh.approx.f32 tanh.approx.f16x2 "
        "ex2.approx.f16x2",
    ),
    ("functions", "16 = 16", "tanh.approx.f16 ex2.approx.f16 tanh.approx.bf16 ex2.approx.ftz.bf16"),
    ("functions", "64 = 64", "sqrt.rn.f64 rsqrt.approx.f64 rcp.rn.f64 rcp.approx.ftz.f64"),
    (
        "compare and select",
        "p = 32 32",
        "setp.ne.s32 setp.lt.u32 setp.lt.f32",
    ),
    ("compare and select", "p = 16 16", "setp.lt.u16 setp.lt.f16"),
    ("compare and select", "p = 64 64", "setp.ne.s64 setp.lt.u64 setp.lt.f64"),
    ("compare and select", "p = 32", "testp.normal.f32 testp.subnor.f32"),
    ("compare and select", "p = 64", "testp.normal.f64 testp.subnor.f64"),
    ("compare and select", "32 = 32 32", "set.ne.u32.s32 set.lt.f32.f32"),
    ("compare and select", "32 = 32 32 32", "slct.u32.s32"),
    ("compare and select", "32 = 32 32 p", "selp.b32"),
    ("compare and select", "64 = 64 64 p", "selp.b64"),
    (
        "convert",
        "32 = 32",
        "cvt.rzi.s32.f32 cvt.rzi.u32.f32 cvt.rn.f32.s32 cvt.rn.f32.u32 cvt.rni.f32.f32 cvt.rmi.f32.f32 "
        "cvt.rna.tf32.f32 cvt.sat.s8.s32 cvt.s32.s8",
    ),
    ("convert", "64 = 64", "cvt.rzi.s64.f64 cvt.rn.f64.s64 cvt.rni.f64.f64"),
    ("convert", "64 = 32", "cvt.f64.f32 cvt.rn.f64.s32 cvt.rzi.s64.f32 cvt.s64.s32"),
    ("convert", "32 = 64", "cvt.rn.f32.f64 cvt.rzi.s32.f64 cvt.rn.f32.s64"),
    ("convert", "16 = 32", "cvt.rn.f16.f32 cvt.rn.bf16.f32 cvt.rzi.s16.f32"),
    ("convert", "32 = 16", "cvt.f32.f16 cvt.rzi.s32.f16 cvt.rn.f32.s16"),
    ("convert", "16 = 16", "cvt.rzi.s16.f16 cvt.rn.f16.s16"),
    ("convert", "32 = 32 32", "cvt.rn.f16x2.f32 cvt.rn.bf16x2.f32 cvt.pack.sat.s16.s32"),
    ("convert", "16 = 32 32", "cvt.rn.satfinite.e4m3x2.f32"),
    ("convert", "32 = 16", "cvt.rn.f16x2.e4m3x2 cvt.rn.f16x2.e5m2x2"),
    ("video", "32 = 32 32 32", "vadd4.s32.s32.s32 vabsdiff4.u32.u32.u32 vmax2.s32.s32.s32"),
    ("video", "32 = 32 32", "vadd.s32.s32.s32 vmin.s32.s32.s32"),
    (
        "warp",
        "32 = 32",
        "shfl.sync.idx.b32 shfl.sync.bfly.b32 shfl.sync.up.b32 vote.sync.ballot.b32 match.any.sync.b32 "
        "redux.sync.add.u32 redux.sync.min.u32 redux.sync.xor.b32",
    ),
    ("warp", " =", "bar.warp.sync"),
)
_OPERANDS = {
    "lop3.b32": "{d}, {a}, {b}, {c}, 0x96",
    "prmt.b32": "{d}, {a}, {b}, {c}",
    "shfl.sync.idx.b32": "{d}, {a}, 5, 31, -1",
    "shfl.sync.bfly.b32": "{d}, {a}, 1, 31, -1",
    "shfl.sync.up.b32": "{d}, {a}, 1, 0, -1",
    "match.any.sync.b32": "{d}, {a}, -1",
    "redux.sync.add.u32": "{d}, {a}, -1",
    "redux.sync.min.u32": "{d}, {a}, -1",
    "redux.sync.xor.b32": "{d}, {a}, -1",
    "bar.warp.sync": "-1",
}
_WHOLE = {
    "vote.sync.ballot.b32": "setp.ne.u32 %pv, {a}, 0; vote.sync.ballot.b32 {d}, %pv, -1;",
    "viaddmax.s32": "add.s32 {t}, {a}, {b}; max.s32 {d}, {t}, {c};",
    "viaddmin.u32": "add.u32 {t}, {a}, {b}; min.u32 {d}, {t}, {c};",
    "testp.subnor.f32": "testp.subnormal.f32 {d}, {a};",
    "testp.subnor.f64": "testp.subnormal.f64 {d}, {a};",
    "addc.u32": "add.cc.u32 {t}, {a}, {b}; addc.u32 {d}, {a}, {b};",
}
"""What is written in another way than a name and its operands: `viaddmax` and `viaddmin` are no PTX, but what
ptxas fuses of two instructions (DPX)."""
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
    register of 32 bits beside them.
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


def _width(text: str) -> int:
    return PREDICATE if text == "p" else int(text)


def _operation(theme: str, signature: str, name: str) -> Operation:
    result, _, sources = (part.strip() for part in signature.partition("="))
    widths = tuple(_width(text) for text in sources.split())
    places = ["{d}"] * bool(result) + [f"{{{letter}}}" for letter in "abce"[: len(widths)]]
    text = _WHOLE.get(name, f"{name} {_OPERANDS.get(name, ', '.join(places))};")
    through = 2 if name == _SIGNS else 1 if _QUOTIENTS.match(name) else 0
    return Operation(name, theme, _width(result) if result else 0, widths, text, through)


OPERATIONS = tuple(
    _operation(theme, signature, name) for theme, signature, names in _LIST for name in names.split()
)
"""Every instruction of the list."""


def get(name: str) -> Operation:
    """The operation of that name."""
    return next(operation for operation in OPERATIONS if operation.name == name)
