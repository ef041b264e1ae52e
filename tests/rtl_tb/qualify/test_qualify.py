"""Mutants: every patch fits its unit, wrong files are refused by line, and a few mutants are really built
and killed."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console

from golden.errors import SpecError, UnknownNameError
from golden.identify.diagnose.flags import flag_names
from golden.identify.diagnosis import names
from rtl_tb.dut.description import load_dut
from rtl_tb.qualify.mutants import Mutant, load_mutants
from rtl_tb.qualify.qualification import WRITERS, Qualification, Row, Score, print_matrix, qualify

MUTANTS = load_mutants()


def test_there_are_enough_mutants_of_both_groups() -> None:
    arithmetic = [mutant for mutant in MUTANTS if mutant.group == "arithmetic"]
    assert len(MUTANTS) >= 30 and len(MUTANTS) - len(arithmetic) >= 5
    assert sum(mutant.diagnosis is not None for mutant in arithmetic) >= 20
    assert len({mutant.fault for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_patch_fits_its_unit_once_and_changes_it(mutant: Mutant) -> None:
    dut = load_dut(mutant.unit)
    texts = mutant.patched(dut)
    changed = {source.name for source in dut.sources if source.read_text() != texts[source.name]}
    assert changed == {patch.file for patch in mutant.patches}
    for name, value in mutant.parameters.items():
        assert dut.parameters.get(name) != value


@cache
def _slugs(file: Path) -> set[str]:
    """The hypotheses about the instruction of a unit, which dozens of mutants share."""
    unit = load_dut(file).instruction.stateless
    return names(unit) | {"nan-word"} | (flag_names(unit) if unit.status else set())


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.diagnosis], ids=lambda mutant: mutant.name)
def test_every_wanted_diagnosis_is_a_hypothesis_about_the_instruction(mutant: Mutant) -> None:
    assert mutant.diagnosis is not None and _slugs(mutant.unit).issuperset(mutant.diagnosis.split("+"))


def write(folder: Path, text: str) -> Path:
    (folder / "some.yaml").write_text(text)
    return folder


VALID = "mutants:\n  - mutant: x\n    unit: integer_s8_wrap\n    fault: none\n    parameters: {SATURATE: 1}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            VALID.replace("s8_wrap", "s8_wrop"),
            r"some.yaml:3: there is no unit 'integer_s8_wrop'; nearest: integer_s8_wrap",
        ),
        (
            VALID.replace("    parameters: {SATURATE: 1}\n", ""),
            r"some.yaml:2: a mutant needs 'patches' or 'parameters'",
        ),
        (VALID.replace("fault", "folt"), r"some.yaml:2: key 'fault' is missing"),
        (VALID + "    group: arithmetik\n", r"some.yaml:6: key 'group' is 'arithmetik'.*nearest: arithmetic"),
        (VALID + "    patches: [x]\n", r"some.yaml:6: each patch is a mapping"),
        (VALID + VALID.split("\n", 1)[1], r"some.yaml:6: mutant 'x' exists already"),
        (VALID + "    trafic: {}\n", r"some.yaml:6: .*trafic"),
    ],
)
def test_wrong_files_are_refused_with_file_line_and_reason(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        load_mutants(folder=write(tmp_path, text))


@pytest.mark.parametrize(("find", "times"), [("no such text", "0"), ("assign", "[2-9]")])
def test_a_patch_that_does_not_fit_exactly_once_is_refused(tmp_path: Path, find: str, times: str) -> None:
    patch = f"    patches: [{{file: integer_dot.sv, find: {find}, replace: y}}]\n"
    (mutant,) = load_mutants(folder=write(tmp_path, VALID + patch))
    complaint = rf"some.yaml:2: '{find}' occurs {times} times in integer_dot.sv, expected exactly once"
    with pytest.raises(SpecError, match=complaint):
        mutant.plant(tmp_path / "rtl")
    (mutant,) = load_mutants(folder=write(tmp_path, VALID + patch.replace("integer_dot", "integer_dott")))
    with pytest.raises(
        SpecError, match=r"'integer_dott.sv' is no source of integer_s8_wrap; nearest: integer_dot.sv"
    ):
        mutant.plant(tmp_path / "rtl")


def test_names_choose_mutants() -> None:
    assert [m.name for m in load_mutants(["nan_word", "nan_word"])] == ["nan_word"]
    with pytest.raises(UnknownNameError, match="nearest: nan_word"):
        load_mutants(["nan_wort"])


@pytest.mark.long
def test_mutants_die_where_they_should_and_the_diagnosis_names_them(tmp_path: Path) -> None:
    """Structured vectors find what random bits do not: saturation once or after every product."""
    wanted = ["saturation_per_step", "integer_wraps", "result_lost_under_backpressure"]
    seen: list[int] = []
    result = qualify(wanted, count=4000, build=tmp_path, progress=lambda name, done, total: seen.append(done))
    assert result.passed and result.survivors == [] and seen == [1, 2, 3]
    step, wraps, lost = result.rows
    assert step.default.kills and not step.random.killed and step.kinds["near_overflow"] > 0.1
    assert step.named and wraps.named and lost.diagnosed is None
    assert lost.default.first is not None and lost.default.killed
    saved = json.loads(json.dumps(result.as_dict()))
    assert [row["mutant"] for row in saved["mutants"]] == wanted and saved["survivors"] == []


def test_a_sound_unit_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit without a fault must not be killed: the runner finds no faults of its own."""
    sound = load_mutants(folder=write(tmp_path, VALID.replace("SATURATE: 1", "K: 32")))
    monkeypatch.setattr("rtl_tb.qualify.qualification.load_mutants", lambda names: sound)
    result = qualify(count=2000, build=tmp_path / "build")
    assert result.survivors == ["x"] and not result.passed
    assert result.rows[0].random.kills == 0 and result.rows[0].diagnosed is None


def test_reports_say_survivors_and_shares() -> None:
    first, second = (mutant for mutant in MUTANTS if mutant.name in ("fraction_bits_minus_one", "nan_word"))
    survivor = Row(first, Score(100, 0, None), Score(100, 0, None), {"tie": 0.0, "wide": 0.0})
    killed = Row(second, Score(100, 3, 7), Score(100, 0, None), {"tie": 0.004, "wide": 0.5}, ("nan-word",))
    result = Qualification(100, 1, [survivor, killed])
    assert result.survivors == [first.name] == result.unnamed and not result.passed
    lines = WRITERS["md"](result).splitlines()
    assert lines[0].startswith(
        "1 of 2 mutants die in the default set of 100 vectors, 0 in the same number of random ones;"
    )
    assert "| `nan_word` | `fda_hopper_f16` | 3 | 7 | survives |  | wide 50 % | nan-word |" in lines
    assert "| Mutant | wide | tie |" in lines and "| `nan_word` | 50 | <1 |" in lines
    html = WRITERS["html"](result)
    assert "survives" in html and "&lt;1" in html and "http" not in html and "<script" not in html
    assert json.loads(WRITERS["json"](result))["survivors"] == [first.name]
    console = Console(file=io.StringIO(), width=200)
    print_matrix(result, console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "survives" in printed and "wide 50 %" in printed and "1 of 2 mutants die" in printed
