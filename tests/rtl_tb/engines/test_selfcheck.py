"""The generated testbench: its compare policy, its waveforms, and the folder that a designer gets."""

from __future__ import annotations

import itertools
import shutil
import subprocess

import engine_dut as small
import numpy as np
import pytest

from golden.number.formats import get_format
from rtl_tb.dut.policy import NAN_POLICIES, ZERO_POLICIES, ComparePolicy
from rtl_tb.engines import selfcheck
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.engines.selfcheck_text import compare_function
from rtl_tb.errors import RtlError
from rtl_tb.simulators import simulators


def codes_of(name: str) -> list[int]:
    """Codes around zero, the smallest, the largest, infinity and NaNs, of both signs."""
    fmt = get_format(name)
    top = ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits
    magnitudes = [
        0,
        1,
        1 << fmt.fraction_bits,
        top - 1,
        top,
        top + 1,
        fmt.nan or 0,
        top + (1 << fmt.fraction_bits) - 1,
    ]
    return [sign << fmt.sign_shift | magnitude for sign in (0, 1) for magnitude in magnitudes]


POLICIES = [ComparePolicy(nan, zero) for nan, zero in itertools.product(NAN_POLICIES, ZERO_POLICIES)]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: f"{policy.nan}-{policy.zero}")
def test_the_policy_in_systemverilog_is_the_one_in_python(tmp_path, policy):
    """All pairs of codes, in words of two elements: the low one the pair, the high one right, then the
    other way round."""
    modules, expected = [], []
    for name in ("e4m3", "e5m2", "f16", "bf16", "f32"):
        fmt, codes = get_format(name), codes_of(name)
        (tmp_path / f"{name}.hex").write_text("\n".join(f"{code:x}" for code in codes))
        modules.append(f"""module check_{name};
    localparam integer OUT_BITS = {2 * fmt.bits}, COUNT = {len(codes)};
    reg [{fmt.bits - 1}:0] codes[0:COUNT-1];
    integer i, j;
{compare_function(fmt, 2 * fmt.bits, 2 * fmt.bits, policy)}
    initial begin
        $readmemh("{name}.hex", codes);
        for (i = 0; i < COUNT; i = i + 1) for (j = 0; j < COUNT; j = j + 1)
            $display("{name} %b%b", accepted({{codes[0], codes[i]}}, {{codes[0], codes[j]}}),
                     accepted({{codes[i], codes[0]}}, {{codes[j], codes[0]}}));
    end
endmodule
""")
        array = np.array(codes, fmt.dtype)
        equal = policy.equal(fmt, array[:, None], array[None, :]).reshape(-1)
        expected += [f"{name} {int(flag)}{int(flag)}" for flag in equal]
    (tmp_path / "check.sv").write_text("\n".join(modules))
    icarus = simulators.icarus()
    tops = [word for module in ("e4m3", "e5m2", "f16", "bf16", "f32") for word in ("-s", f"check_{module}")]
    simulators.elaborate(
        icarus, ["-g2012", *tops, "-o", "check.vvp", "check.sv"], folder=tmp_path, what="check"
    )
    said = simulators.run(
        [icarus.runtime, "-n", "check.vvp"], folder=tmp_path, env=icarus.env, log=tmp_path / "log"
    )
    assert len(said.splitlines()) == len(expected)
    for name in ("e4m3", "e5m2", "f16", "bf16", "f32"):
        mine = [line for line in said.splitlines() if line.startswith(f"{name} ")]
        assert mine == [line for line in expected if line.startswith(f"{name} ")]


@pytest.mark.parametrize(
    ("simulator", "suffix"),
    [("icarus", ".vcd"), ("icarus", ".fst"), pytest.param("verilator", ".fst", marks=pytest.mark.long)],
)
def test_waveforms(tmp_path, simulator, suffix):
    """The file is of the format that its suffix names."""
    dut = small.write_small(tmp_path)
    waves = tmp_path / f"dump{suffix}"
    selfcheck.run(Job(dut, tmp_path / "build", small.small_vectors(dut, 20), simulator, waves=waves))
    content = waves.read_bytes()
    assert b"$var" in content if suffix == ".vcd" else content[:1] == b"\x00"


@pytest.mark.parametrize(
    ("name", "fault", "verdict"),
    [
        ("Icarus", 0, "PASS"),
        ("Icarus", small.WRONG, "FAIL"),
        pytest.param("Verilator", 0, "PASS", marks=pytest.mark.long),
    ],
)
def test_the_folder_runs_as_its_readme_says(tmp_path, name, fault, verdict):
    """The command of the README, by hand, in another folder than it was written in."""
    dut = small.write_small(tmp_path / "unit")
    vectors = small.small_vectors(dut, 50, fault, 10)
    selfcheck.write_testbench(dut, vectors, tmp_path / "first", Traffic(idle=0.2, backpressure=0.2, resets=1))
    folder = shutil.move(tmp_path / "first", tmp_path / "second")
    readme = (tmp_path / "second" / "README.md").read_text()
    (command,) = [line.partition("  #")[0].strip() for line in readme.splitlines() if f"    # {name}" in line]
    env = dict(simulators.find(name.lower()).env)
    done = subprocess.run(
        command, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(("PASS", "FAIL"))]
    assert [line.split(":")[0] for line in lines] == [verdict], done.stdout + done.stderr
    assert ("WRONG vector 10: operands" in done.stdout) == bool(fault)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: text.replace(text.splitlines()[-3] + "\n", ""), "are not whole"),
        (lambda text: text[: text.rindex("D ")], "ended before the testbench did"),
        (lambda text: text.rstrip("\n"), "ended before the testbench did"),
        (
            lambda text: "".join(line for line in text.splitlines(True) if not line.startswith("R ")),
            "are not whole",
        ),
        (lambda text: text.replace("R 10 ", "N 10 "), "are not whole"),
        (lambda text: text.replace("R 10 ", "R 11 "), "are not whole"),
    ],
    ids=["last line", "summary", "end of line", "every result", "another line", "twice"],
)
def test_answers_that_are_not_whole(tmp_path, edit, said):
    """Every result has a line, and the summary counts them."""
    dut = small.write_small(tmp_path)
    job = Job(dut, tmp_path / "build", small.small_vectors(dut, 20, small.WRONG, 10), "icarus")
    came = [int(code) ^ (vector == 10) for vector, code in enumerate(job.vectors.d)]
    log, answers = tmp_path / "run.log", tmp_path / "answers.txt"
    log.write_text("said\n")
    lines = "".join(f"R {vector} {code:08x}\n" for vector, code in enumerate(came))
    whole = f"P 0 0\n{lines}P 16 64\nD 300 20 0 20 0 0 0\n"
    answers.write_text(whole)
    assert selfcheck.read_answers(job, answers, log).actual.tolist() == came
    answers.write_text(edit(whole))
    with pytest.raises(RtlError, match=said):
        selfcheck.read_answers(job, answers, log)


def test_a_wrong_answer_is_not_forgotten_for_a_right_one(tmp_path):
    """A vector that is sent again after a reset has two; each is judged."""
    dut = small.write_small(tmp_path)
    job = Job(dut, tmp_path / "build", small.small_vectors(dut, 2), "icarus")
    right, other = map(int, job.vectors.d)
    (tmp_path / "answers.txt").write_text(
        f"R 0 {right ^ 1:08x}\nR 0 {right:08x}\nR 1 {other:08x}\nD 300 2 1 3 0 0 0\n"
    )
    outcome = selfcheck.read_answers(job, tmp_path / "answers.txt", tmp_path / "run.log")
    assert outcome.actual.tolist() == [right ^ 1, other]
