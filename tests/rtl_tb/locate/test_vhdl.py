"""Units in VHDL as Verilog: the line of VHDL behind each line, and no search where the two differ."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from plus_unit import COMBINATIONAL, plus_unit

from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.check.check import check_dut
from rtl_tb.check.options import Options
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.ports import Design, read_ports
from rtl_tb.dut.vhdl_synthesis import to_verilog
from rtl_tb.engines.job import Job, Outcome, Traffic
from rtl_tb.errors import RtlError
from rtl_tb.locate.result import Edit
from rtl_tb.locate.vhdl import Synthesised, synthesised, verilog_of
from rtl_tb.runs.verdict import judge, verdict_of

pytestmark = pytest.mark.skipif(
    shutil.which("ghdl") is None, reason="GHDL is not installed: apt install ghdl"
)
VHDL = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
entity plus is
  generic (more : natural := 0);
  port (a, b : in unsigned(7 downto 0); d : out unsigned(7 downto 0));
end;
architecture rtl of plus is
  signal sum : unsigned(7 downto 0);
begin
  sum <= a + b;
  d <= sum - more;
end;
"""


@pytest.fixture
def dut(tmp_path: Path) -> Dut:
    return load_dut(plus_unit(tmp_path, "plus.vhd", VHDL, f"parameters: {{more: 1}}\n{COMBINATIONAL}"))


def test_a_line_of_verilog_has_its_line_of_vhdl(dut: Dut, tmp_path: Path) -> None:
    made = verilog_of(dut, tmp_path / "made")
    text = made.sources[0].read_text().split("\n")
    job: Any = SimpleNamespace(dut=made)
    nothing: Any = None
    unit = Synthesised(job, nothing)
    minus = next(at for at, line in enumerate(text, 1) if " - " in line)
    origin = unit.origin(minus)
    assert origin is not None and (origin.file, origin.line) == (tmp_path / "plus.vhd", 12)
    assert unit.origin(2) is None, "a port"
    edit = Edit(origin.file, origin.line, text[minus - 1].strip(), "8'b1", "8'b0", origin.text)
    assert edit.phrase().endswith(", which GHDL's synthesis makes of `d <= sum - more;`,")


def test_a_source_in_capital_letters(dut: Dut, tmp_path: Path) -> None:
    """Names of VHDL have no case, and those of the top are written small, as dut.yaml has them."""
    (tmp_path / "plus.vhd").write_text(VHDL.upper())
    assert dut.vhdl is not None
    made = to_verilog(Design(dut.sources, "plus"), dut.vhdl, tmp_path / "made", "the DUT")
    assert made.top == "plus"
    assert set(read_ports(made).ports) == {"a", "b", "d"}


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "abs a": lambda a, _: abs(a),
    "minimum(a, b)": min,
    "maximum(a, b)": max,
    "a / b when b /= 0 else a": lambda a, b: int(a / b) if b else a,
    "a rem b when b /= 0 else a": lambda a, b: a - b * int(a / b) if b else a,
    "a mod b when b /= 0 else a": lambda a, b: a - b * (a // b) if b else a,
}


def test_what_ghdl_writes_as_vhdl_is_verilog(dut: Dut, tmp_path: Path) -> None:
    """A unit whose result is one of six, by the remainder of a and b: the Verilog has all six operations."""
    text = VHDL.replace("unsigned", "signed").replace("sum - more", "sum")
    names = [f"d{at}" for at in range(len(OPERATIONS))]
    declared = (
        f"  signal sum, {', '.join(names)} : signed(7 downto 0);\n  signal chosen : unsigned(7 downto 0);\n"
    )
    text = text.replace("  signal sum : signed(7 downto 0);\n", declared)
    each = "".join(f"  {name} <= {code};\n" for name, code in zip(names, OPERATIONS, strict=True))
    cases = "".join(f"{name} when {at}, " for at, name in enumerate(names[:-1]))
    choice = f"  chosen <= unsigned(a xor b) mod {len(names)};\n  with to_integer(chosen) select\n    sum <= "
    text = text.replace("  sum <= a + b;\n", f"{each}{choice}{cases}{names[-1]} when others;\n")
    (tmp_path / "plus.vhd").write_text(text)
    made = verilog_of(replace(dut, parameters={}), tmp_path / "made")
    vectors = default_set(dut.instruction, 3000, 1)
    came = engines.run("fast", Job(made, tmp_path / "b", vectors, "verilator")).actual.reshape(-1)
    a, b = (vectors.operands[name].reshape(-1).astype(np.int8) for name in "ac")
    chosen = (a ^ b).view(np.uint8) % len(OPERATIONS)
    for at, (code, expected) in enumerate(OPERATIONS.items()):
        pairs = zip(a[chosen == at].tolist(), b[chosen == at].tolist(), strict=True)
        wanted = np.array([expected(one, two) for one, two in pairs])
        assert len(wanted) > 200 and (came[chosen == at] == wanted.astype(np.uint8)).all(), code


def test_an_input_without_bits_that_has_a_default(dut: Dut, tmp_path: Path) -> None:
    text = VHDL.replace("(a, b : in", '(none : in std_logic_vector(-1 downto 0) := ""; a, b : in')
    text = text.replace("a + b", "a + b + none'length")
    (tmp_path / "plus.vhd").write_text(text.replace("sum - more", "sum"))
    made = verilog_of(replace(dut, parameters={}), tmp_path / "made")
    vectors = default_set(dut.instruction, 500, 1)
    came = engines.run("fast", Job(made, tmp_path / "b", vectors, "verilator")).actual.reshape(-1)
    assert (came == (vectors.operands["a"].reshape(-1) + vectors.operands["c"].reshape(-1))).all()


def test_choices_latches_and_names_that_verilog_reserves(dut: Dut, tmp_path: Path) -> None:
    body = """signal input, reg : unsigned(7 downto 0);
begin
  with a(1 downto 0) select input <= b when "00", a when "01", x"07" when others;
  process (a, b) begin
    if b(0) = '1' then reg <= a; end if;
  end process;
  d <= input;
end;
"""
    text = VHDL[: VHDL.index("signal sum")] + body
    (tmp_path / "plus.vhd").write_text(text)
    made = verilog_of(replace(dut, parameters={}), tmp_path / "made")
    vectors = default_set(dut.instruction, 500, 1)
    a, b = (vectors.operands[name].reshape(-1).astype(int) for name in "ac")
    chosen = np.where(a % 4 == 0, b, np.where(a % 4 == 1, a, 7))
    came = engines.run("fast", Job(made, tmp_path / "b", vectors, "verilator")).actual.reshape(-1)
    assert (came == chosen).all()


@pytest.mark.parametrize("wrong", [False, True])
def test_a_fault_that_ghdl_runs_no_vector_of_is_found(wrong: bool, dut: Dut, tmp_path: Path) -> None:
    rare = "sum <= a + b + 1 when a = 195 and b(7 downto 3) = 20 else a + b"
    text = VHDL.replace("sum <= a + b", rare if wrong else "sum <= a + b")
    (tmp_path / "plus.vhd").write_text(text.replace("sum - more", "sum"))
    dut = replace(dut, parameters={})
    result = check_dut(dut, Options(count=1700, failures=None, explain=False, build=tmp_path / "b"))
    assert result.verdict.outcome.engine == "cocotb" and bool(result.verdict.failed.any()) == wrong
    assert wrong or "68,000 further vectors" in " ".join(result.notes)


def test_a_verilog_with_other_results_is_refused(
    dut: Dut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GHDL 2.0 writes some expressions wrongly: what mends these says nothing of the unit."""
    vectors = default_set(dut.instruction, 8, 1, dut.level)
    actual = vectors.d ^ vectors.d.dtype.type(1)

    def outcome(codes: Any) -> Outcome:
        none = np.zeros(len(codes), np.bool_)
        return Outcome(
            "cocotb", "ghdl", "", actual=codes, received=~none, unknown=none, failures=[], cycles=8
        )

    verdict = judge(vectors, outcome(actual), dut.compare)
    job = Job(dut, tmp_path / "build", vectors, "ghdl")
    answers = iter((actual.copy(), vectors.d))
    monkeypatch.setattr(engines, "run", lambda _engine, _job: outcome(next(answers)))
    assert synthesised(job, verdict, tmp_path / "made").verdict.wrong.all()
    with pytest.raises(RtlError, match="other results for 8 of 8 vectors"):
        synthesised(job, verdict, tmp_path / "made")
    other = actual.copy()
    other[3] ^= 2
    answers = iter((other, np.delete(actual, 3, axis=0)))
    assert synthesised(job, verdict, tmp_path / "made", most=0.2).without == 1


@pytest.mark.long
def test_the_line_of_a_fault_is_named(dut: Dut, tmp_path: Path) -> None:
    (tmp_path / "plus.vhd").write_text(VHDL.replace("a + b", "a or b"))
    dut = replace(dut, parameters={"more": 0})
    options = Options(count=400, budget=120.0, repair=None, failures=None, build=tmp_path / "build")
    repair = check_dut(dut, options).repairs[0]
    assert "plus.vhd:11: with `+` for `|` in `assign " in repair.sentence()


PIPELINE = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
entity plus is
  port (clk, rst : in std_logic; a, b : in unsigned(7 downto 0); d : out unsigned(7 downto 0));
end;
architecture rtl of plus is
  signal kept, sum, unread : unsigned(7 downto 0);
begin
  process (clk) begin
    if rising_edge(clk) then
      kept <= a; unread <= b;
      if rst = '1' then sum <= (others => '0');
      else sum <= kept(7 downto 1) & (a(0) or (kept(0) and b(0)));
      end if;
    end if;
  end process;
  d <= sum;
end;
"""
CLOCKED = """clock: clk
reset: {port: rst, active: high, synchronous: true, cycles: 4}
handshake: {kind: latency, latency: 1}
"""


def test_results_of_what_lay_on_the_input_before_are_the_same_in_verilog(tmp_path: Path) -> None:
    """Each result has bits of the cycle before: also behind resets, GHDL and Verilator saw the same words."""
    dut = load_dut(plus_unit(tmp_path, "plus.vhd", PIPELINE, CLOCKED))
    vectors = default_set(dut.instruction, 400, 1)
    job = Job(dut, tmp_path / "build", vectors, "ghdl", Traffic(0.2, 0.0, 20, seed=1))
    verdict = verdict_of("cocotb", job)
    assert verdict.failed.any()
    assert not synthesised(job, verdict, tmp_path / "made").without


def test_a_signal_that_nothing_reads_is_in_the_verilog(tmp_path: Path) -> None:
    dut = load_dut(plus_unit(tmp_path, "plus.vhd", PIPELINE, CLOCKED))
    assert "assign unread = " in verilog_of(dut, tmp_path / "made").sources[0].read_text()


def test_an_expression_of_one_line_is_one_in_the_verilog(tmp_path: Path) -> None:
    """What a register takes has the line that assigns it, not that of its process."""
    dut = load_dut(plus_unit(tmp_path, "plus.vhd", PIPELINE, CLOCKED))
    made = verilog_of(dut, tmp_path / "made")
    text = made.sources[0].read_text().split("\n")
    job: Any = SimpleNamespace(dut=made)
    nothing: Any = None
    at = next(number for number, line in enumerate(text, 1) if "kept[7:1]" in line)
    assert "a[0] | (kept[0] & b[0])" in text[at - 1]
    taken = [number for number, line in enumerate(text, 1) if "<= n" in line and "_o;" in line]
    lines = {found.line for each in taken if (found := Synthesised(job, nothing).origin(each)) is not None}
    assert lines & {13, 14}


def test_what_ghdl_refuses_to_synthesise_is_read_in_other_words(dut: Dut, tmp_path: Path) -> None:
    """Levels of signals, which a chip has as 0 and 1 alone, and the length of an element of an array."""
    text = VHDL.replace(
        "  signal sum", "  type pair is array (0 to 1) of std_logic_vector(7 downto 0);\n  signal sum"
    )
    text = text.replace("signal sum :", "signal two : pair;\n  signal sum :")
    body = (
        "  two(0) <= std_logic_vector(a) when to_ux01(a(0)) = '1' else std_logic_vector(a);\n"
        "  more_bits : for i in 1 to 1 generate\n"
        "    two(i) <= std_logic_vector(resize(unsigned(two(i-1)), two(i-1)'length));\n"
        "  end generate;\n"
    )
    text = text.replace("  sum <= a + b;\n", f"{body}  sum <= unsigned(two(1)) + b;\n")
    (tmp_path / "plus.vhd").write_text(text.replace("sum - more", "sum"))
    made = verilog_of(replace(dut, parameters={}), tmp_path / "made")
    vectors = default_set(dut.instruction, 500, 1)
    came = engines.run("fast", Job(made, tmp_path / "b", vectors, "verilator")).actual.reshape(-1)
    assert (came == vectors.d.reshape(-1)).all()


def test_a_slice_of_which_one_bound_moves_is_read_in_other_words(dut: Dut, tmp_path: Path) -> None:
    """GHDL 2.0 refuses such a slice. Both are taken of the same line, which a tab begins."""
    bits = "(others => '0')"
    text = VHDL.replace("  signal sum", f"  signal low, high : unsigned(7 downto 0) := {bits};\n  signal sum")
    body = (
        "  process (all)\n    variable at : integer range 0 to 7;\n  begin\n"
        "    at := to_integer(a(2 downto 0));\n"
        "\tlow <= (others => '0'); high <= (others => '0');\n"
        "\tif a(at downto 0) /= 0 and b(7 downto at) /= 0 then low <= to_unsigned(1, 8); end if;\n"
        "  end process;\n  d <= low;\n"
    )
    text = text.replace("  sum <= a + b;\n  d <= sum - more;\n", body)
    (tmp_path / "plus.vhd").write_text(text)
    unit = replace(dut, parameters={})
    vectors = default_set(unit.instruction, 300, 1)
    made = verilog_of(unit, tmp_path / "made")
    assert made.sources[0].read_text().count("mmagold_slice") == 0, "no line is a call, but its operations"
    came = engines.run("fast", Job(made, tmp_path / "b", vectors, "verilator")).actual.reshape(-1)
    a, b = (vectors.operands[name].reshape(-1).astype(int) for name in "ac")
    low = a & (2 << (a & 7)) - 1
    assert (came == ((low != 0) & (b >> (a & 7) != 0))).all()


INSTANCES = """library ieee;
use ieee.std_logic_1164.all;
entity full_adder is
  port (x, y, cin : in std_logic; s, cout : out std_logic);
end;
architecture rtl of full_adder is
begin
  s <= x xor y xor cin;
  cout <= (x and y) or (x and cin) or (y and cin);
end;
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
entity plus is
  port (a, b : in unsigned(7 downto 0); d : out unsigned(7 downto 0));
end;
architecture rtl of plus is
  signal carry : std_logic_vector(8 downto 0);
  signal first, second : std_logic;
begin
  carry(0) <= '0';
  bits : for i in 0 to 7 generate
    bit0 : if i = 0 generate
      u0 : entity work.full_adder port map (a(0), b(0) and b(0), carry(0), first, second);
      d(0) <= first; carry(1) <= second;
    end generate;
    other : if i > 0 generate
      u : entity work.full_adder port map (a(i), b(i), carry(i), d(i), carry(i + 1));
    end generate;
  end generate;
end;
"""


def test_instances_have_expressions_and_signals_of_the_vhdl(tmp_path: Path) -> None:
    """An input gets the bit of a vector itself, an output drives the signal that has its value; the results
    are those of the unit."""
    dut = load_dut(plus_unit(tmp_path, "plus.vhd", INSTANCES, COMBINATIONAL))
    made = verilog_of(dut, tmp_path / "made")
    text = made.sources[0].read_text()
    assert ".x(a[3])" in text and ".s(first)" in text and ".cout(second)" in text
    vectors = default_set(dut.instruction, 300, 1)
    came = engines.run("fast", Job(made, tmp_path / "b", vectors, "verilator")).actual.reshape(-1)
    assert (came == vectors.d.reshape(-1)).all()
    at = next(number for number, line in enumerate(text.split("\n"), 1) if ".x(a[3])" in line)
    job: Any = SimpleNamespace(dut=made)
    nothing: Any = None
    origin = Synthesised(job, nothing).origin(at)
    assert origin is not None and "port map (a(i), b(i)" in origin.text
