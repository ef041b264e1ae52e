"""The list of scalar PTX instructions: what a family becomes, and what a wrong one says."""

from pathlib import Path

import pytest

from golden.catalog import ptx_forms
from golden.errors import SpecError

HEAD = (
    "source: test\nisa: '9.0'\ntargets: [sm_90a]\nimmediates: {u32: 7}\ngroups:\n  - title: T\n    forms:\n"
)


def _load(tmp_path: Path, *families: str) -> tuple[ptx_forms.Form, ...]:
    path = tmp_path / "list.yaml"
    path.write_text(HEAD + "".join(f"      - {family}\n" for family in families), "utf-8")
    return ptx_forms.load(path).forms


def test_a_family_is_multiplied_out_with_pairs_and_immediates(tmp_path: Path) -> None:
    (one, two) = _load(
        tmp_path,
        '{name: "mul.wide.{t}", over: {"t, w": [[u32, u64], [s32, s64]]}, out: "{w}", in: ["{t}", "{t}"], '
        "kinds: [rr, ri]}",
    )
    assert (one.name, two.name) == ("mul.wide.u32", "mul.wide.s32")
    assert (one.outputs, one.inputs, one.kinds) == (("u64",), ("u32", "u32"), ("rr", "ri"))
    assert one.body == "mul.wide.u32 $d, $a, $b" and one.immediates == ("7", "7")
    assert two.immediates == ("", "")
    assert ptx_forms.substituted(one, {"d": "%d", "a": "%x", "b": "5"}) == "mul.wide.u32 %d, %x, 5"


def test_two_families_may_share_a_name_but_not_a_kind(tmp_path: Path) -> None:
    more = "{name: add.u32, out: u32, in: [u32, u32], kinds: [ri]}"
    (form,) = _load(tmp_path, "{name: add.u32, out: u32, in: [u32, u32], kinds: [rr]}", more)
    assert form.kinds == ("rr", "ri")
    with pytest.raises(SpecError, match=r"list\.yaml:9: .* has the kind 'ri' twice"):
        ptx_forms.load.cache_clear()
        _load(tmp_path, more.replace("ri", "rr, ri"), more)


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("{name: add.u32, out: u32, in: [u32, u32], kinds: [r]}", "kind 'r', expected 2 letters of r, i"),
        ("{name: add.u32, out: u32, in: [u32, u32], kinds: [rq]}", "kind 'rq', expected 2 letters"),
        ('{name: "add.{t}", out: u32, in: [u32], kinds: [r]}', "names a variable that `over` lacks: 't'"),
        (
            '{name: a, over: {"t, w": [[u32]]}, out: u32, in: [u32], kinds: [r]}',
            "key 't, w', expected 2 values",
        ),
        (
            '{name: a, out: u32, in: [u32], body: "a $d, $b", kinds: [r]}',
            r"names b, d, its operands are a, d",
        ),
        ("{name: a, out: u32, in: [u32], kinds: [r], kind: r}", "unknown key 'kind'"),
    ],
)
def test_a_wrong_family_says_where_and_what(tmp_path: Path, family: str, said: str) -> None:
    ptx_forms.load.cache_clear()
    with pytest.raises(SpecError, match=rf"list\.yaml:8: .*{said}"):
        _load(tmp_path, family)


def test_the_list_holds_all_that_the_paper_and_ptx_name() -> None:
    """Mnemonics of the PTX ISA that compute on registers; memory and matrices are elsewhere."""
    there = {form.name.split(".")[0].split(" ")[0] for form in ptx_forms.load().forms}
    wanted = {
        "abs",
        "activemask",
        "add",
        "and",
        "bar",
        "bfe",
        "bfi",
        "bfind",
        "bmsk",
        "brev",
        "clz",
        "cnot",
        "copysign",
        "cos",
        "cvt",
        "cvta",
        "div",
        "dp2a",
        "dp4a",
        "elect",
        "ex2",
        "fence",
        "fma",
        "fns",
        "isspacep",
        "lg2",
        "lop3",
        "mad",
        "mad24",
        "match",
        "max",
        "membar",
        "min",
        "mov",
        "mul",
        "mul24",
        "nanosleep",
        "neg",
        "not",
        "or",
        "popc",
        "prmt",
        "rcp",
        "redux",
        "rem",
        "rsqrt",
        "sad",
        "selp",
        "set",
        "setp",
        "shf",
        "shfl",
        "shl",
        "shr",
        "sin",
        "slct",
        "sqrt",
        "sub",
        "szext",
        "tanh",
        "testp",
        "vabsdiff",
        "vabsdiff2",
        "vabsdiff4",
        "vadd",
        "vadd2",
        "vadd4",
        "vavrg2",
        "vavrg4",
        "vmad",
        "vmax",
        "vmax2",
        "vmax4",
        "vmin",
        "vmin2",
        "vmin4",
        "vote",
        "vset",
        "vset2",
        "vset4",
        "vshl",
        "vshr",
        "vsub",
        "vsub2",
        "vsub4",
        "xor",
    }
    assert wanted <= there


def test_operands_in_words() -> None:
    assert ptx_forms.operands_text("rri") == "register, register, immediate"
    assert ptx_forms.operands_text("uu") == "2 x kernel parameter"
    assert ptx_forms.operands_text("") == "none"
