"""Other forms of an expression, one term more, and texts exchanged: which are tried, and how a build of all
choices asks for them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import integer_dot
import pytest
from repaired_dot import judged, planted

from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.check import check as checks
from rtl_tb.check.check import Options
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.locate import search
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.changes import Change, Changes, Group, Place, _Finder, find_changes
from rtl_tb.locate.search import Unfinished, _edit, _Search
from rtl_tb.locate.selector import with_selector
from rtl_tb.locate.terms import _joined, is_joined
from rtl_tb.qualify.mutants import FOLDER
from rtl_tb.runs.verdict import judge

UNIT = """typedef struct packed { logic sign; logic [6:0] rest; } word_t;
module leaf #(parameter int LEAF = 9) (input logic [7:0] p, q, output logic [7:0] r);
    assign r = p - q;
endmodule
module dot4 (
    input  logic        clk, rst_n, in_valid, out_ready,
    input  logic [31:0] a, b,
    input  logic [31:0] c,
    output logic        in_ready, out_valid,
    output logic [31:0] d
);
    logic [7:0] x, y, out; logic [2:0] ex, ey; logic used, even, go, sx; logic [3:0] some; word_t word;
    logic signed [7:0] term; logic signed [31:0] total; logic [31:0] kept, sum;
    logic [9:0] shift; logic [4:0] by; logic [7:0] queue [0:3];
    assign queue = '{x, y, x, y};
    assign in_ready = 1'b1;
    assign {x, y, used, some} = 21'(a);
    assign word = word_t'(b[7:0]);
    assign term = $signed(x);
    assign total = 32'(term) + 32'($unsigned(term));
    assign kept = {8'b0, a[31:8] + 24'(used)};
    assign go = x[6:3] >= y[6:3];
    assign sx = |x[6 -: 3];
    assign shift = (shift_of(x, y) > 10'(x)) ? 10'(x) : shift_of(x, y);
    assign by = c[4:0];
    assign even = &x[6:3] || &y[6:3];
    assign ex = x[6:4] + {2'b0, ~(|x[6:4])};
    assign ey = y[6:4];
    leaf u_leaf (.p(x), .q(y), .r(out));
    logic [7:0] beside;
    leaf u_beside (.p(c[7:0]), .q(c[15:8]), .r(beside));
    assign sum = go ? ~kept : 32'b0;
    logic [3:0] more; logic [7:0] chosen; logic [3:0] hidden; logic [1:0] cut;
    logic signed [31:0] twice, padded;
    assign twice = total + 32'(term);
    assign padded = {{(32 - 20){1'b0}}, total[19:0]};
    assign more[0] = x[3];
    assign chosen = used ? 8'd0 : x + y;
    assign hidden = {1'b1, x[2:0]};
    assign cut = y[5:4];
    assign more[1] = (x[2] & y[3]) | (y[2] & y[3]);
    assign more[2] = x[7];
    assign more[3] = sum == 32'd0;
    typedef enum logic [1:0] { IDLE, LOAD, SEND } state_t;
    state_t state;
    logic [15:0] wide;
    logic [7:0] up, down;
    logic [2:0] held;
    assign state = used ? LOAD : IDLE;
    assign wide = 16'($signed(8'(x * y)));
    assign held[0] = sum[7:0] == 8'hFF;
    assign held[1] = kept[30:0] != 31'h7F800000;
    assign held[2] = word.rest[3:0] > y[3:0];
    always_comb begin
        up = x - y;
        if (used) up = x; else if (even) up = y;
        if (go) up = down;
        if (sx) up = out;
        case (c[1:0])
            2'b11: down = x >> ey;
            2'b10: down = y << c[3:0];
            default: down = out;
        endcase
    end
    localparam logic [3:0] BITS = 4'd9;
    localparam int NARROW = 4, SAME = 4, WIDE = 6;
    logic [NARROW-1:0] level; logic seen, set, all, none; logic [7:0] back;
    for (genvar e = 0; e < 8; e++) begin : g_back
        assign back[e] = x[7-e];
    end
    assign all = &sum[30:23] || 2'(word.rest == '0) > 1; assign none = word.rest != '0 && kept > 26 + !seen;
    assign level = ~|x[6:3] && ex > NARROW ? NARROW'(x ^ y) : '0;
    function automatic logic [9:0] shift_of(input logic [7:0] one, two);
        return 10'(one) - 10'(two);
    endfunction
    always_ff @(posedge clk)
        if (!rst_n) out_valid <= 1'b0;
        else begin
            out_valid <= in_valid;
            seen <= used;
            if (used) set <= 1'b1;
            if (go) set <= 0;
            if (sx) set <= 1'bx;
            for (int i = 0; i < 4; i++) if (ex > ey) d[i] <= some[i];
            d[31:4] <= {word.sign, sum[26:0] ^ {out, by, shift, total[3:0]}};
        end
endmodule
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dut, Changes]:
    dut = integer_dot.planted(tmp_path_factory.mktemp("forms"), 4, UNIT)
    return dut, find_changes(dut)


def plain(text: str) -> str:
    return re.sub(r"[\s()]", "", text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("32'($unsigned(term))", "32'($signed(term))"),
        ("{8'b0, a[31:8] + 24'(used)}", "{8'b0, a[31:8]} + 24'(used)"),
        ("{8'b0, a[31:8] + 24'(used)}", "32'($signed(a[31:8] + 24'(used)))"),
        ("{{(32 - 20){1'b0}}, total[19:0]}", "32'($signed(total[19:0]))"),
        ("x[6:3] >= y[6:3]", "x[6:0] >= y[6:0]"),
        ("|x[6 -: 3]", "|x[6:0]"),
        ("&x[6:3] || &y[6:3]", "&x[6:0] || &y[6:0]"),
        ("~kept", "-kept"),
        ("c[4:0]", "|c[31:4+1] ? {5{1'b1}} : c[4:0]"),
        ("shift_of(x, y)", "shift_of(y, x)"),
        ("y[6:4]", "y[6:4] + {2'b0, ~(|y[6:4])}"),
        ("x[6:3] >= y[6:3]", "x[6:3] >= y[6:3] && used"),
        ("word.sign", "even"),
        ("word.sign", "word.sign && |total"),
        ("32'b0", "{sx, 31'b0}"),
        ("x", "queue[3]"),
        ("x", "(x > y) ? y : x"),
        ("some[i]", "used ? some[i] : d[i]"),
        ("used ? 8'd0 : x + y", "(used ? 8'd0 : x) + y"),
        ("1'b1", "|x[6:3]"),
        ("x[3]", "x[3] & (x[3+1] | |x[3-1:0])"),
        ("y[5:4]", "{y[5:4+1], |y[4:0]}"),
        ("y[2] & y[3]", "y[2] & x[3]"),
        ("x[7]", "x[7] | y[7]"),
        ("sum == 32'd0", "sum == 32'd0 || !(|sum)"),
        ("go", "word.sign"),
        ("sum == 32'd0", "sum >= 32'd0"),
        ("16'($signed(8'(x * y)))", "$signed(16'(x * y))"),
        ("x", "$signed(x)"),
        ("sum[7:0] == 8'hFF", "sum[31:0] >= 8'hFF"),
        ("kept[30:0] != 31'h7F800000", "kept[31:0] != 31'h7F800000"),
        ("kept[30:0] != 31'h7F800000", "kept[31:0] != {{1{1'b1}}, 31'h7F800000}"),
        ("word.rest[3:0]", "word.rest"),
        ("x - y", "y - x"),
        ("x >> ey", "x >> (ey + 1)"),
        ("y << c[3:0]", "y << c"),
        ("LOAD", "SEND"),
        ("2'b11", "2'h2"),
        ("~|x[6:3]", "~|x[6:0]"),
        ("~|x[6:3]", "~&x[6:3]"),
        ("~|x[6:3]", "|x[6:3]"),
        ("x ^ y", "y"),
        ("x >> ey", "x"),
        ("used", "seen | used"),
        ("NARROW", "WIDE"),
        ("7-e", "e"),
        ("!seen", "1'b1"),
        ("&sum[30:23]", "&sum[30:23]||sum[31:23]>sum[30:23]"),
        ("word.rest != '0", "{word.sign, word.rest} != '0"),
        ("word.rest == '0", "{word.sign, word.rest} == '0"),
        ("26", "23"),
    ],
)
def test_a_form_is_tried(found: tuple[Dut, Changes], before: str, after: str) -> None:
    tried = {(plain(one.before), plain(one.after)) for one in found[1].of_choices()}
    assert (plain(before), plain(after)) in tried


def test_a_term_takes_no_sign_away(found: tuple[Dut, Changes]) -> None:
    """One operand without a sign, and Verilog computes all of the expression without."""
    signed = [one.pattern for one in found[1].of_choices() if one.pattern.startswith("(total + ")]
    assert signed and all("$signed({1'b0, \0})" in pattern for pattern in signed)


def test_bits_of_two_operands_are_tried_as_one_term() -> None:
    found = _joined(["flush", "raw_a.zero", "sat", "raw_b.zero", "(|raw_a)", "(|raw_b)"])
    assert found == ["(raw_a.zero || raw_b.zero)", "(raw_a.zero && raw_b.zero)"]
    assert all(map(is_joined, found)) and not is_joined("(|raw_a)")


_WIDTHS = """module leaf #(parameter int N = 4) (input logic [7:0] p, q, output logic r);
    logic [N-1:0] part; logic signed [3:0] fixed;
    assign part = p[N-1:0] - q[N-1:0];
    assign fixed = $signed(p[3:0]);
    assign r = part > p[N-1:0] || fixed < $signed(q[3:0]);
endmodule
module dot4 (
    input  logic        clk, rst_n, in_valid, out_ready,
    input  logic [31:0] a, b,
    input  logic [31:0] c,
    output logic        in_ready, out_valid,
    output logic [31:0] d
);
    logic [1:0] r; logic [8:0] sum; logic [3:0] turns; logic go;
    leaf #(.N(4)) u_one (.p(a[7:0]), .q(b[7:0]), .r(r[0]));
    leaf #(.N(SECOND)) u_two (.p(a[7:0]), .q(b[7:0]), .r(r[1]));
    for (genvar g = 1; g < 3; g++) begin : g_turn
        assign turns[g] = &(c[4*g:1] - 1'b1);
    end
    always_comb case (c[1:0])
        2'b00: sum = a[3:0] + b[3:0];
        2'b01: sum = a[3:0] - b[3:0];
        default: sum = {8'b0, go};
    endcase
    assign d = {28'(sum), r, 2'(turns)};
    assign go = c[0]; assign in_ready = out_ready; assign out_valid = in_valid;
endmodule
"""


@pytest.mark.parametrize("second", [pytest.param(4, marks=pytest.mark.long), 6])
def test_a_number_that_is_wider_in_another_instance_is_no_choice(tmp_path: Path, second: int) -> None:
    """One text cannot give both their bits. What is as wide everywhere stays, and of a loop each turn
    counts."""
    text = _WIDTHS.replace("SECOND", f"{second}")
    found = find_changes(integer_dot.planted(tmp_path, 4, text))
    before = {change.before for change in found.of_choices()}
    assert ("p[N-1:0] - q[N-1:0]" in before) == (second == 4)
    assert {"$signed(p[3:0])", "fixed < $signed(q[3:0])", "a[3:0] + b[3:0]"} <= before
    assert "c[4*g:1] - 1'b1" not in before


def test_what_is_exchanged_keeps_the_bits_of_the_text_around(tmp_path: Path) -> None:
    """Inputs of four bits at ports of eight."""
    text = _WIDTHS.replace("SECOND", "4").replace(
        ".p(a[7:0]), .q(b[7:0]), .r(r[1])", ".p(c[3:0]), .q(c[7:4]), .r(r[1])"
    )
    found = find_changes(integer_dot.planted(tmp_path, 4, text))
    (place,) = {one.place for one in found.of_choices() if one.before == "c[3:0]" and one.too}
    assert found.types[place] == (8, False)


def test_what_is_exchanged_has_other_bits_in_another_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing else is tried at the place."""
    skip = importlib.import_module("pyslang.ast").VisitAction.Skip
    monkeypatch.setattr(_Finder, "_expression", lambda *_: skip)
    swapped = "\n    leaf #(.N(N)) u_in (.p(part), .q(p[N-1:0]), .r());\nendmodule"
    text = _WIDTHS.replace("leaf #(parameter", "outer #(parameter", 1).replace("\nendmodule", swapped, 1)
    leaf = "module leaf #(parameter int N = 4) (input logic [N-1:0] p, q, output logic r); endmodule\n"
    for second in (4, 6):
        both = text.replace("leaf #(.N(4))", "outer #(.N(4))").replace(
            "leaf #(.N(SECOND))", f"outer #(.N({second}))"
        )
        found = find_changes(integer_dot.planted(tmp_path, 4, leaf + both))
        assert any(one.too and one.before == "part" for one in found.of_choices()) == (second == 4)


def test_a_bit_that_is_declared_beside_another_is_a_term(tmp_path: Path) -> None:
    """Ten others have more similar names."""
    many = ", ".join(f"go{number}" for number in range(10))
    text = _WIDTHS.replace("SECOND", "4").replace(" logic go;", f" logic go, lost; logic {many};")
    after = {one.after for one in find_changes(integer_dot.planted(tmp_path, 4, text)).of_choices()}
    assert {"((go) && lost)", "((go) && go0)"} <= after


def test_a_bit_of_the_same_line_stands_for_a_comparison(tmp_path: Path) -> None:
    """Also one of a structure in a structure, however unlike its name is and however many there are."""
    kinds = (
        "typedef struct packed { logic nan, minus; } kind_t; typedef struct packed { kind_t kind; } all_t;\n"
    )
    many = ", ".join(f"sum{number}" for number in range(20))
    text = kinds + _WIDTHS.replace("SECOND", "4").replace(
        " logic go;", f" logic go, up; all_t all; logic {many}; assign up = sum < 3 ? all.kind.minus : go;"
    )
    changes = find_changes(integer_dot.planted(tmp_path, 4, text)).of_choices()
    assert "all.kind.minus" in {one.after for one in changes if one.before == "sum < 3"}


def test_an_operator_beside_takes_all_of_a_text(tmp_path: Path) -> None:
    """`!!x` is no Verilog, and `x & a | b` is another thing than `x & (a | b)`."""
    file = tmp_path / "x.sv"
    for text, before, after, expected in (
        ("if (!s.x) y", "s.x", "!s.x", "if (!(!s.x)) y"),
        ("d = x & y & z;", "x & y", "x | y", "d = (x | y) & z;"),
        ("d = x & y;", "x & y", "x | y", "d = x | y;"),
        ("d = x - 1;", "-", "+", "d = x + 1;"),
        ("d = x[3:0] ? y : z;", "x[3:0]", "w[4:1]", "d = w[4:1] ? y : z;"),
    ):
        place = Place(file, text.index(before), text.index(before) + len(before))
        found = Changes(texts={file: text}).applied([Change(place, before, after)])
        assert found == {file: expected}


def test_a_name_is_changed_in_all_places(tmp_path: Path) -> None:
    wrong = ("sum + c", "(sum > total) ? total : sum")
    declared = (
        "logic signed [31:0] sum;",
        "logic signed [31:0] sum, total, most; assign {total, most} = '0;",
    )
    tried = {plain(one.after) for one in find_changes(planted(tmp_path, wrong, declared)).of_choices()}
    assert "sum>most?most:sum" in tried


def exchange(found: Changes) -> Change:
    (change,) = (one for one in found.of_choices() if one.too and (one.before, one.after) == ("x", "y"))
    return change


def test_inputs_of_an_instance_are_exchanged(found: tuple[Dut, Changes]) -> None:
    changes = found[1]
    change = exchange(changes)
    (text,) = changes.applied([change]).values()
    assert text == UNIT.replace(".p(x), .q(y)", ".p(y), .q(x)")
    edit = _edit(changes, change)
    assert (edit.before, edit.after) == ("x and y", "y and x")
    assert change.meets(Change(change.too[0][0], "y", "x")), "no second change where it is written"


def test_slices_are_exchanged_wherever_they_begin(found: tuple[Dut, Changes]) -> None:
    pairs = {(one.before, one.after) for one in found[1].of_choices() if one.too}
    assert ("c[7:0]", "c[15:8]") in pairs


def test_a_flag_that_is_set_may_be_cleared(found: tuple[Dut, Changes]) -> None:
    changes = found[1]
    flags = [one for one in changes.of_choices() if one.too and one.after == "1'b1"]
    texts = [next(iter(changes.applied([one]).values())) for one in flags]
    assert texts == [
        UNIT.replace("if (used) set <= 1'b1;", "if (1'b1) set <= (used);"),
        UNIT.replace("if (go) set <= 0;", "if (1'b1) set <= !(go);"),
    ]


def test_items_of_a_case_are_exchanged(found: tuple[Dut, Changes]) -> None:
    pairs = {(one.before, one.after) for one in found[1].of_choices() if one.too}
    assert {("x >> ey", "y << c[3:0]"), ("x >> ey", "out"), ("y << c[3:0]", "out")} <= pairs


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if (go) up = down;\n        if (sx) up = out;", "if (sx) up = out;\n        if (go) up = down;"),
        ("if (used) up = x; else if (even) up = y;", "if (even) up = y; else if (used) up = x;"),
    ],
)
def test_conditions_change_their_order(found: tuple[Dut, Changes], before: str, after: str) -> None:
    """Of two statements, and of an if and its else."""
    changes = found[1]
    many = [one for one in changes.of_choices() if len(one.too) == 3]
    assert UNIT.replace(before, after) in [next(iter(changes.applied([one]).values())) for one in many]


def test_a_sized_number_that_is_no_choice_is_a_constant(found: tuple[Dut, Changes]) -> None:
    """As that of a parameter is: it has to stand before the unit runs."""
    tried = {(one.before, one.after) for one in found[1].of_constants()}
    assert {("4'd9", "4'h8"), ("4'd9", "4'ha")} <= tried


def test_a_parameter_may_be_another_one_of_its_type(found: tuple[Dut, Changes]) -> None:
    """In widths, which have to stand before the unit runs. Not one of the same value, nor one of another
    module of the file."""
    wide = {place for place, others in found[1].constants.items() if others.keys() & {"WIDE", "SAME"}}
    declared, cast = (UNIT.index(text) for text in ("NARROW-1", "NARROW'(x"))
    assert {place.start for place in wide} == {declared, cast}
    assert all(set(found[1].constants[place]) == {"WIDE"} for place in wide)


def test_a_selector_asks_for_an_exchange_in_both_places(found: tuple[Dut, Changes], tmp_path: Path) -> None:
    dut, changes = found
    with_selector(dut, changes, [exchange(changes)], tmp_path)
    text = (tmp_path / "0_dot4.sv").read_text()
    assert ".p((mmagold_change::is[1] ? 8'(y) : (x))), .q((mmagold_change::is[1] ? 8'(x) : (y)))" in text


def test_a_selector_asks_for_all_terms_of_a_place_at_once(found: tuple[Dut, Changes], tmp_path: Path) -> None:
    dut, changes = found
    listed = [one for one in changes.of_choices() if one.before == "word.sign" and plain(one.pattern) == "\0"]
    assert len(listed) > 2
    with_selector(dut, changes, listed, tmp_path)
    terms = ", ".join(one.term for one in reversed(listed))
    made = f"mmagold_change::is[{len(listed)}:1]"
    expected = f"((|{made}) ? 1'((|({{{terms}}} & {made}))) : (word.sign))"
    assert expected in (tmp_path / "0_dot4.sv").read_text()


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        ("by", "(~by)", "{out, (mmagold_change::is[1] ? 5'((~by)) : (by)), shift"),
        ("x[6:3]", "8'(x)", "(mmagold_change::is[1] ? 4'(8'(x)) : (x[6:3])) >= y[6:3]"),
        ("$signed(x)", "x", "term = (mmagold_change::is[1] ? $signed(8'(x)) : ($signed(x)))"),
    ],
    ids=["braces", "comparison", "sign"],
)
def test_what_is_not_chosen_keeps_its_bits_and_its_sign(
    found: tuple[Dut, Changes], tmp_path: Path, before: str, after: str, asked: str
) -> None:
    """The values of a conditional have the width of the widest, and no sign where one has none."""
    dut, changes = found
    there = UNIT.index({"by": "{out, by", "x[6:3]": "go = x[6:3]", "$signed(x)": "term = $signed(x)"}[before])
    start = UNIT.index(before, there)
    place = Place(dut.sources[0].resolve(), start, start + len(before))
    with_selector(dut, changes, [Change(place, before, after)], tmp_path)
    assert asked in (tmp_path / "0_dot4.sv").read_text()


@pytest.mark.long
@pytest.mark.parametrize("group", [Group.TOKENS, Group.FORMS])
def test_number_0_of_a_real_unit_is_the_unit(tmp_path: Path, group: Group) -> None:
    """Its adders have sums within braces, and numbers of several widths that are compared."""
    dut = load_dut(FOLDER / "units" / "per_pair_grid" / "dut.yaml")
    changes = find_changes(dut)
    chosen = with_selector(dut, changes, changes.of_choices((group,)), tmp_path / "all")
    job = Job(chosen, tmp_path / "build", default_set(dut.instruction, 3000, 1, dut.level))
    assert judge(job.vectors, engines.run("fast", job), dut.compare).passed


def test_what_was_tried_is_not_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers were tried; the build of the other changes took too long."""

    def late(*_: object, **__: object) -> None:
        raise RtlError("its time was up")

    def tried(_self: object, _texts: object, constants: search._Constants, *_: object, **__: object) -> None:
        constants.done.add(0)

    verdict, job = judged(planted(tmp_path, ("sum + c", "sum - c")), tmp_path)
    monkeypatch.setattr(_Search, "_choices", late)
    monkeypatch.setattr(_Search, "_try_constants", tried)
    monkeypatch.setattr(_Search, "_pairs", lambda *_: [])
    with pytest.raises(Unfinished, match=r"1 numbers and widths: its time was up"):
        _Search(verdict, job, Budget(60), None).found()
    result = checks.Check(job.dut, Options(repair=60), verdict, job.traffic, job.vectors)
    checks.mend(result, verdict, job, lambda *_: None, 60)
    assert any("these alone were tried" in hint for hint in result.hints)
    assert not any("no change of the text was tried" in hint for hint in result.hints)


@pytest.mark.long
def test_many_changes_are_run_by_one_program(tmp_path: Path) -> None:
    """As each by itself; what does not answer says nothing of those behind it."""
    verdict, job = judged(planted(tmp_path, ("sum + c", "sum - c")), tmp_path)
    changes = find_changes(job.dut)
    listed = [one for one in changes.of_choices() if one.before in ("sum - c", "in_valid", "in_ready")]
    asked = _Search(verdict, job, Budget(300), None)
    vectors: VectorSet = verdict.vectors[:40]
    dut = with_selector(job.dut, changes, listed, tmp_path / "choices")
    probe = search.replace(asked.job, dut=dut, vectors=vectors, timeout_cycles=50)
    program = search.fast.build(probe, search.simulators.verilator(), search.fast.FOR_TRIALS)
    run = asked._trial(search.replace(probe, dut=job.dut), program, tmp_path / "run")
    numbers = [(number,) for number in range(len(listed) + 1)]
    alone, many = [run(*one) for one in numbers], search._each(run, numbers)
    assert any(one is None for one in alone) and any(one is not None and not one.any() for one in alone)
    assert [None if one is None else list(one) for one in many] == [
        None if one is None else list(one) for one in alone
    ]
