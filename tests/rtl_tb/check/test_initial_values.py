"""A unit must not be right by luck: signals that nothing drives, and paths through the handshake."""

import pytest
from changed_unit import changed
from long_run import long_after

from rtl_tb.errors import RtlError

UNDRIVEN = (
    ("logic signed [35:0] sum;", "logic signed [35:0] sum;\n    logic carry;"),
    ("36'(acc);", "36'(acc) + 36'(carry);"),
)
UNSET_REGISTER = (
    ("logic signed [35:0] sum;", "logic signed [35:0] sum;\n    logic warm;"),
    ("36'(acc);", "36'(acc) ^ 36'(!warm);"),
    ("if (vld_i && rdy_o) begin", "if (vld_i && rdy_o) begin\n            warm <= 1'b1;"),
)


@pytest.mark.parametrize(
    ("seed", "engine"), [(1, "fast"), pytest.param(2, "selfcheck", marks=pytest.mark.long)]
)
def test_a_signal_that_nothing_drives_never_passes(tmp_path, seed, engine):
    """Whatever the random bit is that it starts with."""
    result = changed(tmp_path, *UNDRIVEN, seed=seed, engine=engine)
    assert not result.passed
    assert result.unset.wrong["zeros"] == 0 < result.unset.wrong["ones"]
    assert any("carry" in suspect for suspect in result.unset.suspects)
    assert "carry" in result.as_dict()["unset"]["sentence"]


def test_a_failing_check_runs_no_other_starts_when_half_of_its_time_is_up(tmp_path):
    result = changed(tmp_path, ("36'(acc);", "36'(acc) + 36'd1;"), budget=0.01)
    assert not result.passed and result.unset is None
    assert any("what other starts give is not known" in note for note in result.notes)


@pytest.mark.parametrize("seed", long_after(1, [5, 6, 7]))
def test_a_register_that_is_read_before_it_is_set_never_passes(tmp_path, seed):
    """Only the first result depends on it, and no lint sees it."""
    result = changed(tmp_path, *UNSET_REGISTER, seed=seed)
    assert not result.passed
    assert result.unset.wrong["ones"] == 0 < result.unset.wrong["zeros"]


REACHED_LATE = (
    (
        "logic signed [35:0] sum;",
        "logic signed [35:0] sum;\n    logic warm;\n    logic [11:0] taken;\n"
        "    always_ff @(posedge clock)\n"
        "        if (reset) taken <= '0;\n"
        "        else if (vld_i && rdy_o) begin\n"
        "            taken <= taken + 12'd1;\n"
        "            if (taken == 12'd2531) warm <= 1'b1;\n"
        "        end",
    ),
    ("36'(acc);", "36'(acc) ^ 36'(taken >= 12'd2500 && !warm);"),
)


@pytest.mark.parametrize("seed", long_after(1, [4, 1, 2]))
def test_a_register_that_is_read_late_for_the_first_time_never_passes(tmp_path, seed):
    """Whether it is right with random bits or not: all vectors have to run from the others, too. It counts
    in 32 vectors, since a result that saturates hides the bit."""
    result = changed(tmp_path, *REACHED_LATE, seed=seed)
    assert not result.passed
    zeros, random = (result.unset.wrong[start] for start in ("zeros", "random"))
    assert 0 < zeros <= 32 and random in (0, zeros) and result.unset.wrong["ones"] == 0
    assert result.unset.tried == 3000


UNSET_FIELD = (
    (
        "logic signed [35:0] sum;",
        "logic signed [35:0] sum;\n    logic [1:0] mode;\n"
        "    always_ff @(posedge clock) if (reset && vld_i) mode <= 2'd0;",
    ),
    ("sum = 36'(acc);", "sum = 36'(acc);\n        if (mode == 2'd2) sum = sum + 36'd1;"),
)


@pytest.mark.parametrize("seed", long_after(1, [1, 2, 3]))
def test_a_field_that_nothing_sets_never_passes(tmp_path, seed):
    """Neither zeros nor ones are its wrong value, and an `if` on X takes the right branch."""
    result = changed(tmp_path, *UNSET_FIELD, seed=seed)
    assert not result.passed
    assert result.unset.wrong["ones"] == result.unset.wrong["zeros"] == 0 < result.unset.wrong["random"]


def test_a_wrong_unit_is_not_said_to_depend_on_its_start(tmp_path):
    result = changed(tmp_path, ("36'(acc);", "36'(acc) + 36'd1;"))
    assert not result.passed
    assert result.unset is None


@pytest.mark.long
def test_a_start_that_fails_is_minimised_from_that_start(tmp_path):
    """With random bits it passes, so that only a run from the other start shows the failure."""
    results = [changed(tmp_path, *UNDRIVEN, seed=seed, explain=True) for seed in (1, 2, 3)]
    assert any(result.unset.wrong["random"] == 0 for result in results)
    assert all(result.example is not None and result.example.alone for result in results)


def test_out_valid_must_not_follow_out_ready(tmp_path):
    paths = (
        ("if (reset) vld_o <= 1'b0;", "if (reset) full <= 1'b0;"),
        ("else if (rdy_o) vld_o <= vld_i;", "else if (rdy_o) full <= vld_i;"),
        (
            "assign rdy_o = !vld_o || rdy_i;",
            "logic full;\n    assign vld_o = full && rdy_i;\n    assign rdy_o = !full || rdy_i;",
        ),
    )
    result = changed(tmp_path, *paths)
    assert "valid_follows_ready" in {failure.kind for failure in result.verdict.outcome.failures}


def test_the_unit_itself_passes(tmp_path):
    assert changed(tmp_path).passed


def test_a_wrong_unit_fails_also_where_another_start_does_not_run(tmp_path, monkeypatch):
    """It may not settle from there; that is a note, and no verdict less."""

    def no_run(*_):
        raise RtlError("the DUT ended the simulation in cycle 0: DIDNOTCONVERGE")

    monkeypatch.setattr("rtl_tb.check.check.compare_initial_values", no_run)
    result = changed(tmp_path, ("36'(acc);", "36'(acc) + 36'd1;"))
    assert not result.passed and any("DIDNOTCONVERGE" in note for note in result.notes)
    with pytest.raises(RtlError):
        changed(tmp_path)
