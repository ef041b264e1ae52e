"""Reading dut.yaml: what a good file becomes, and what each kind of mistake says."""

from __future__ import annotations

from pathlib import Path

import pytest

import golden
from golden.errors import SpecError
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.dut.portmap import Place
from rtl_tb.dut.wrapper import wrapper_of

GOOD = """\
dut: my_dot
top: my_dot
sources: [pkg.sv, lib/*.sv, my_dot.sv]
include: inc
defines: {SYNTH: 1, FAST: }
parameters: {K: 16, WIDE: true, NAME: fast}
instruction: hopper:HMMA.16816.F32
clock: clk
reset: {port: rst, active: high, synchronous: false, cycles: 7}
handshake:
  kind: valid_ready
  input: {valid: in_valid, ready: in_ready}
  output: {valid: out_valid, ready: out_ready}
ports:
  a: a
  b: {port: b, order: descending}
  c: c
  d: d
constants: {mode: 3, fmt: 0x1f}
compare: {nan: canonical, zero: any}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("pkg.sv", "my_dot.sv", "lib/z.sv", "lib/add.sv", "inc/defs.svh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def load(folder: Path, text: str) -> Dut:
    (folder / "dut.yaml").write_text(text)
    return load_dut(folder / "dut.yaml")


def test_a_full_file(folder: Path) -> None:
    dut = load(folder, GOOD)
    assert (dut.name, dut.top, dut.level, dut.clock) == ("my_dot", "my_dot", "dot", "clk")
    assert [str(path.relative_to(folder)) for path in dut.sources] == [
        "pkg.sv",
        "lib/add.sv",
        "lib/z.sv",
        "my_dot.sv",
    ]
    assert dut.include == (folder / "inc",)
    assert dut.defines == {"SYNTH": "1", "FAST": ""}
    assert dut.parameters == {"K": 16, "WIDE": 1, "NAME": "fast"}
    assert dut.instruction is golden.instruction("hopper", "HMMA.16816.F32")
    assert dut.reset is not None
    assert (dut.reset.port, dut.reset.active_low, dut.reset.synchronous, dut.reset.cycles) == (
        "rst",
        False,
        False,
        7,
    )
    assert dut.constants == {"mode": 3, "fmt": 31}
    assert dut.compare == ComparePolicy("canonical", "any")
    assert dut.can_stall_output
    assert (dut.layout.operand_width, dut.layout.result_width) == (256 + 256 + 32, 32)


def test_places_count_from_the_least_significant_end(folder: Path) -> None:
    dut = load(folder, GOOD)
    assert dut.ports["a"].places(dut.fields["a"])[:2] == [Place("a", None, 0), Place("a", None, 16)]
    assert dut.ports["b"].places(dut.fields["b"])[:2] == [Place("b", None, 240), Place("b", None, 224)]


def test_a_file_may_be_read_from_another_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "dut.yaml").write_text(GOOD)
    monkeypatch.chdir(folder / "lib")
    assert load_dut("../dut.yaml").sources[0].is_file()
    assert load_dut("../dut.yaml").sources[0].is_absolute()


def test_a_unit_of_ones_own(folder: Path) -> None:
    example = Path(__file__).parents[3] / "spec" / "examples" / "exact_pair.yaml"
    (folder / "pair.yaml").write_text(example.read_text())
    dut = load(folder, GOOD.replace("instruction: hopper:HMMA.16816.F32", "unit: pair.yaml"))
    assert (dut.instruction.name, dut.instruction_name) == ("exact_pair", "pair.yaml")


LATENCY = (
    GOOD[: GOOD.index("handshake:")]
    + "handshake: {kind: latency, latency: %s}\n"
    + GOOD[GOOD.index("ports:") :]
)


def test_latency_given_and_measured(folder: Path) -> None:
    given, measured = load(folder, LATENCY % 5), load(folder, LATENCY % "measure")
    assert (given.handshake.latency, given.handshake.measured) == (5, False)
    assert (measured.handshake.latency, measured.handshake.measured) == (None, True)
    assert measured.with_latency(9).handshake.latency == 9
    with pytest.raises(SpecError, match="'valid_ready'"):
        load(folder, GOOD).with_latency(3)


OUTPUT = "  output: {valid: out_valid, ready: out_ready}\n"
MISTAKES = [
    ("top: my_dot\n", "topp: my_dot\n", 1, "key 'top' is missing; nearest: topp"),
    ("top: my_dot", "top: my-dot", 2, "'my-dot', expected a Verilog identifier"),
    ("top: my_dot", "top: mmagold_dut", 2, "'mmagold_dut', the name of the generated wrapper"),
    ("hopper:HMMA.16816.F32", '"hopper:HMMA 1\\n2"', 7, "unknown instruction 'HMMA 1 2' on hopper"),
    ("dut: my_dot", "dut: ../x", 1, "key 'dut' is '../x', expected a name of letters"),
    ("my_dot.sv", "my_dott.sv", 3, "'my_dott.sv' is no file in {folder}; nearest: my_dot.sv"),
    ("lib/*.sv", "lib/*.vhd", 3, "'lib/*.vhd' is no file in"),
    ("include: inc", "include: incl", 4, "incl is no folder"),
    ("K: 16", "16: K", 6, "key '16', expected a port or port.field"),
    ("K: 16", "K: [1]", 6, "key 'K' is a list, expected an integer or a string or true or false"),
    (
        "hopper:HMMA.16816.F32",
        "hopper:HMMA.16816.F31",
        7,
        "unknown instruction 'HMMA.16816.F31' on hopper; nearest: HMMA.16816.F32",
    ),
    (
        "hopper:HMMA.16816.F32",
        "HMMA.16816.F32",
        7,
        "is 'HMMA.16816.F32', expected architecture:name, as hopper:HMMA.16816.F32",
    ),
    ("hopper:HMMA", "hoper:HMMA", 7, "unknown architecture 'hoper'"),
    ("instruction: hopper:HMMA.16816.F32", "unit: none.yaml", 7, "key 'unit' is 'none.yaml'"),
    (
        "instruction: hopper:HMMA.16816.F32\n",
        "",
        1,
        "expected either 'instruction' or 'unit'",
    ),
    ("clock: clk\n", "", 1, "key 'clock' is missing"),
    ("reset: {port: rst,", "reset: {", 9, "key 'port' is missing"),
    ("active: high", "active: hihg", 9, "'hihg', expected one of low, high; nearest: high"),
    ("cycles: 7", "cycles: 0", 9, "key 'cycles' is 0, expected an integer from 1"),
    (
        "kind: valid_ready",
        "kind: axi",
        11,
        "key 'kind' is 'axi', expected one of valid_ready, valid, latency, combinational",
    ),
    (
        "kind: valid_ready",
        "kind: valid",
        12,
        "unknown key 'ready', expected one of beats, first, hold, last, valid",
    ),
    ("kind: valid_ready", "kind: combinational", 12, "unknown key 'input'"),
    (OUTPUT, "", 11, "key 'output' is missing"),
    (OUTPUT, OUTPUT + "  interval: 4\n", 14, "unknown key 'interval'"),
    (", ready: out_ready", "", None, ""),
    ("  c: c\n", "", 15, "'ports' lacks c: hopper:HMMA.16816.F32 has the operands a, b, c, d"),
    ("  d: d\n", "  d: d\n  e: e\n", 19, "unknown key 'e'"),
    ("order: descending", "order: backwards", 16, "expected one of ascending, descending"),
    (
        "order: descending",
        "word: {bits: 30, elements: 2}",
        16,
        "a word has 30 bits, but 2 elements of b need 32",
    ),
    ("order: descending", "word: {elements: 3}", 16, "a word has 3 elements, expected a divisor of 16 (b)"),
    ("order: descending", "stride: 8", 16, "key 'stride' is 8, but a word of b takes 16 bits"),
    ("order: descending", "array: unpacked, stride: 32", 16, "key 'stride' cannot be used with key 'array'"),
    ("constants:", "exclude: {a: [nan, zero, nan]}\nconstants:", 19, "key 'a' holds nan twice"),
    ("order: descending", "first: 1", 16, "key 'first' needs key 'array'"),
    ("order: descending", "major: column", 16, "key 'major' needs a matrix"),
    ("{port: b, order: descending}", "[b0, b1]", 16, "b lists 2 ports, expected 16"),
    ("{port: b, order: descending}", "{port: a, lsb: 240}", 16, "b[0] and a[15] share bit 240 of port 'a'"),
    ("{port: b, order: descending}", "7", 16, "key 'b' is 7, expected a string, or a list"),
    ("mode: 3", "mode: -1", 19, "key 'mode' is -1, expected an integer from 0"),
    ("mode: 3", "a: 3", 19, "port 'a' is named both as constant and as operand"),
    ("mode: 3", "clk: 3", 8, "port 'clk' is named both as clock and as constant"),
    ("  d: d\n", "  d: a\n", 14, "port 'a' is named both as d and as operand"),
    ("nan: canonical", "nan: sloppy", 20, "expected one of exact, canonical, any"),
    ("compare:", "comparison: 1\ncompare:", 20, "unknown key 'comparison'"),
]


@pytest.mark.parametrize(("old", "new", "line", "said"), MISTAKES)
def test_mistakes(folder: Path, old: str, new: str, line: int | None, said: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if not said:  # the neighbours of a mistake are fine
        load(folder, text)
        return
    with pytest.raises(SpecError) as caught:
        load(folder, text)
    message = str(caught.value)
    assert said.format(folder=folder) in message
    assert "\n" not in message
    assert message.startswith(f"{folder}/dut.yaml" + (f":{line}: " if line else ": "))


def test_latency_mistakes(folder: Path) -> None:
    for value, said in (
        ("soon", "expected an integer from 0 to 100000 or one of measure"),
        (-1, "expected an integer from 0"),
    ):
        with pytest.raises(SpecError, match=said):
            load(folder, LATENCY % value)


def test_ready_ports_are_required_somewhere(folder: Path) -> None:
    with pytest.raises(SpecError, match="names no ready port; for a unit without any, write 'kind: valid'"):
        load(folder, GOOD.replace(", ready: in_ready", "").replace(", ready: out_ready", ""))


def test_a_field_of_the_mode_has_a_port_for_each_bit(tmp_path: Path) -> None:
    """FloPoCo's FMA has negateAB and negateC for what is one field of two bits here."""
    unit = Path(__file__).parents[3] / "spec" / "examples" / "fma_modes.yaml"
    (tmp_path / "fma.sv").write_text(
        "module fma (input [15:0] a, b, c, input [2:0] rnd, input neg_ab, neg_c, output [15:0] d);endmodule\n"
    )
    text = (
        f"top: fma\nsources: [fma.sv]\nunit: {unit}\nhandshake: {{kind: combinational}}\n"
        "ports: {a: a, b: b, c: c, mode: {rnd: rnd, op: [neg_ab, neg_c]}, d: d}\n"
    )
    (tmp_path / "dut.yaml").write_text(text)
    wrapper = wrapper_of(load_dut(tmp_path / "dut.yaml"))
    assert (
        "assign p_neg_ab[0:0] = in_data[3:3];" in wrapper and "assign p_neg_c[0:0] = in_data[4:4];" in wrapper
    )
    (tmp_path / "dut.yaml").write_text(text.replace(", neg_c]", ", neg_c, rnd]"))
    with pytest.raises(SpecError, match="op lists 3 ports"):
        load_dut(tmp_path / "dut.yaml")
