"""What `make test` leaves to `make test-all`, so that it takes minutes.

`ONE_IN` has tests whose parameters show one rule on many subjects: random units, instructions, layouts. One
case in N of each runs by default. A test whose parameters are rules of their own, such as faults that have to
be found, has no place there. `LONG` has whole checks and searches of four seconds and more, each with a test
that keeps its rule by default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

ONE_IN = {
    "golden/catalog/test_catalog.py::test_a_name_resolves_exactly_where_the_chip_has_it": 3,
    "golden/catalog/test_ieee_units.py::test_every_rounding_is_exact": 2,
    "golden/catalog/test_tensix.py::test_floats_agree_with_rationals": 3,
    "golden/catalog/test_unit_files.py::test_an_instruction_as_the_file_of_a_unit": 5,
    "golden/circuit/test_specification.py::test_examples_answer_as_the_reference": 3,
    "golden/circuit/test_specification.py::test_flags_of_every_sum_near_the_least_number": 5,
    "golden/circuit/test_specification.py::test_instructions_answer_as_the_reference": 3,
    "golden/circuit/test_specification.py::test_units_with_any_keys_answer_as_the_reference": 5,
    "golden/circuit/test_windows.py::test_terms_of_every_distance_are_added_exactly": 5,
    "golden/functions/test_functions.py::test_some_groups_of_codes_have_the_digests_of_the_gpu": 3,
    "golden/identify/test_datapath.py::test_without_faults_it_is_the_core": 2,
    "golden/identify/test_fixed_point.py::test_integers_of_signal_processors_are_found": 2,
    "golden/identify/test_missing_operands.py::test_a_dissection_is_continued": 2,
    "golden/identify/test_missing_operands.py::test_a_function_is_found_with_the_operands_that_it_takes": 2,
    "golden/identify/test_named_faults.py::test_a_clamp_that_is_off_is_named": 2,
    "golden/identify/test_named_faults.py::test_a_fault_of_one_operation_is_named": 2,
    "golden/identify/test_named_faults.py::test_a_narrow_shift_of_the_last_normalisation_is_named": 4,
    "golden/identify/test_relations.py::test_a_fault_of_an_integer_unit_is_named": 2,
    "golden/kernels/test_finding.py::test_a_product_with_more_addends": 2,
    "golden/kernels/test_triton_dot.py::test_a_loop_of_dots_gives_what_an_h100_answered": 3,
    "golden/model/test_blocks.py::test_examples": 2,
    "golden/model/test_blocks.py::test_random_units": 5,
    "golden/model/test_blocks.py::test_wherever_operands_lie": 5,
    "golden/model/test_doubles.py::test_nans_of_chains": 4,
    "golden/model/test_doubles.py::test_random_units": 5,
    "golden/model/test_integers.py::test_every_layout": 5,
    "golden/model/test_integers.py::test_every_shape_and_depth": 5,
    "golden/model/test_kernels.py::test_a_changed_step_changes_the_kernel": 2,
    "golden/model/test_kernels.py::test_c_alone_beside_scaled_groups": 7,
    "golden/model/test_kernels.py::test_small_matrices_share_a_tile": 5,
    "golden/model/test_models_agree.py::test_every_instruction_runs_the_same_on_both_paths": 2,
    "golden/model/test_models_agree.py::test_reference_general_and_lanes_agree": 3,
    "golden/model/test_reference.py::test_the_reference_is_the_oracle": 4,
    "golden/model/test_reference.py::test_the_reference_is_the_oracle_for_searched_cases": 2,
    "golden/model/test_registers.py::test_random_units": 2,
    "golden/number/test_rounding.py::test_round_to_code_about_every_power_of_two": 4,
    "golden/program/test_bounds.py::test_random_units_keep_their_bounds": 5,
    "golden/program/test_real_units.py::test_examples": 5,
    "golden/program/test_real_units.py::test_the_catalogue": 2,
    "golden/program/test_stochastic.py::test_models_round_as_rationals_do": 4,
    "golden/proof/test_equality.py::test_the_verdict_is_what_all_operands_say": 2,
    "golden/publish/test_ieee.py::test_rounded_sum_is_one_ieee_rounding": 2,
    "golden/publish/test_instruction_page.py::test_special_values_are_what_the_core_answers": 5,
    "golden/publish/test_instruction_page.py::test_the_example_is_executed": 3,
    "golden/publish/test_instruction_page.py::test_worst_errors_in_rationals": 2,
    "golden/stimuli/test_boundaries.py::test_a_nan_scale_over_data_that_are_all_zero": 2,
    "golden/stimuli/test_boundaries.py::test_a_sum_that_carries_far_has_the_last_bit_beside_a_tie": 2,
    "golden/stimuli/test_boundaries.py::test_every_two_causes_of_a_special_result_meet": 4,
    "golden/stimuli/test_boundaries.py::test_totals_on_both_sides_of_a_clamp": 2,
    "golden/vectors/test_c_header.py::test_matrices_are_the_cores": 3,
    "golden/vectors/test_c_header.py::test_published_words": 3,
    "golden/vectors/test_c_header.py::test_registers_are_those_of_the_layouts": 3,
    "golden/vectors/test_vectors.py::test_expected_results_are_the_units": 5,
    "golden/vectors/test_vectors.py::test_words_are_what_the_definition_says_and_unpack_to_the_operands": 5,
    "golden/vectors/test_vectors_files.py::test_what_is_written_is_read": 5,
    "hw_capture/campaign/test_campaign.py::test_every_kind_makes_legal_operands_with_the_core_s_results": 3,
    "hw_capture/products/test_layers.py::test_a_vector_times_a_matrix_without_the_matrix_unit": 2,
    "hw_capture/products/test_layers.py::test_sums_of_rows": 5,
    "hw_capture/products/test_products.py::test_the_plan_has_the_digest_of_what_an_h100_gave": 3,
    "hw_capture/products/test_torch_runs.py::test_an_h200_gave_these_bits": 3,
    "hw_capture/timing/test_scalar.py::test_compiled_chains_of_other_targets": 4,
    "hw_capture/timing/test_timing_bench.py::test_both_loops_of_sun_hold_their_instruction": 2,
    "hw_capture/timing/test_timing_bench.py::test_compiled_loops_hold_the_instruction": 2,
    "hw_capture/timing/test_timing_bench.py::test_compiled_loops_of_other_architectures": 2,
    "hw_capture/timing/test_timing_bench.py::test_wmma_and_its_moves_are_what_004_says_and_more": 2,
    "rtl_tb/check/test_exported.py::test_verilator_and_icarus_read_it_without_a_warning": 4,
    "rtl_tb/check/test_flags.py::test_riscvs_word_of_flags_has_a_bit_that_is_always_0": 2,
    "rtl_tb/check/test_gate_level.py::test_which_texts_have_undefined_bits": 2,
    "rtl_tb/check/test_loads.py::test_a_reset_that_leaves_what_was_held_is_found": 4,
    "rtl_tb/check/test_loads.py::test_climbs_end_at_the_ends": 2,
    "rtl_tb/check/test_other_outputs.py::test_a_port_says_which_operands_do_not_count": 2,
    "rtl_tb/check/test_other_outputs.py::test_unused_bits_have_what_the_description_says": 2,
    "rtl_tb/check/test_traffic_faults.py::test_an_integer_accumulator_in_each_of_its_bits": 3,
    "rtl_tb/dut/test_handshakes.py::test_operands_that_have_to_stay_are_named": 3,
    "rtl_tb/dut/test_styles.py::test_ports_as_others_write_them": 3,
    "rtl_tb/engines/test_builds.py::test_a_damaged_build_is_found_out_before_it_runs": 2,
    "rtl_tb/engines/test_ghdl.py::test_a_sound_unit_passes": 2,
    "rtl_tb/locate/test_kinds.py::test_what_is_drawn_has_its_inverse": 3,  # one of each kind
    "rtl_tb/locate/test_kinds.py::test_what_is_missing_is_among_what_is_searched": 2,
    "rtl_tb/qualify/test_mutator.py::test_every_change_of_a_reference_source_is_of_one_line": 3,
    "rtl_tb/runs/test_latency.py::test_a_unit_that_no_latency_explains_fails": 2,
    "rtl_tb/runs/test_latency.py::test_a_wrong_unit_has_a_latency": 3,
    "rtl_tb/runs/test_polarity.py::test_each_signal_of_a_handshake": 2,
    "rtl_tb/tb/test_vhdl.py::test_a_wrong_unit_and_bits_that_are_no_level_fail": 2,
}
"""By test: of how many cases one is run, from the first on. 5 has no factor in common with the three
instruction sets and the four kinds of random units, so that each of them comes."""


LONG = {
    "golden/identify/test_two_operations.py": {
        "test_a_difference_of_two_products_is_found": (
            "::test_a_chain_with_guard_bits_in_its_register_is_found"
        ),
    },
    "golden/cli/test_dissect.py": {
        "test_a_box_that_nothing_explains_ends_with_status_1": (
            "golden/identify/test_recordings.py::test_what_no_candidate_explains_is_said"
        ),
    },
    "golden/identify/test_diagnosis.py": {
        "test_two_faults_are_listed_as_two": ("::test_two_faults"),
    },
    "golden/identify/test_missing_operands.py": {
        "test_modes_of_a_multiplier_are_found_one_by_one": (
            "golden/identify/test_modes_and_state.py::test_each_mode_is_found_and_what_differs"
        ),
        "test_the_search_starts_at_what_a_dot_product_without_c_is_meant_to_be": (
            "::test_a_unit_of_the_language_is_found_as_it_is_written"
        ),
        "test_what_is_not_explained_is_said_without_operands_that_the_unit_lacks": (
            "golden/identify/test_recordings.py::test_what_no_candidate_explains_is_said"
        ),
    },
    "golden/proof/test_equality.py": {
        "test_the_command_proves_refutes_or_says_what_is_open": (
            "::test_the_verdict_is_what_all_operands_say"
        ),
    },
    "rtl_tb/check/test_check.py": {
        "test_the_capsule_holds_the_story_and_repeats_it": (
            "rtl_tb/check/test_capsule.py::test_other_vectors_than_those_that_failed_are_no_repetition"
        ),
    },
    "rtl_tb/check/test_foreign_text.py": {
        "test_x_that_one_reader_alone_has_is_no_failure": ("::test_x_that_each_reader_has_is_one"),
        "test_a_fault_under_type_parameters_is_found_by_its_line": ("::test_every_construct_is_looked_at"),
        "test_the_verdict_comes_first_and_the_search_ends_with_its_budget": (
            "::test_looking_for_changes_ends_within_a_loop"
        ),
    },
    "rtl_tb/check/test_named.py": {
        "test_a_symptom_that_explains_everything_does_not_end_the_search_in_the_text": (
            "rtl_tb/locate/test_search.py::test_a_planted_fault_is_found"
        ),
        "test_a_value_that_is_computed_once_is_named_with_its_line": (
            "rtl_tb/locate/test_search.py::test_a_planted_fault_is_found"
        ),
    },
    "rtl_tb/check/test_reasons.py": {
        "test_two_faults_have_an_example_each": ("golden/identify/test_diagnosis.py::test_two_faults"),
        "test_a_valid_that_sticks": (
            "rtl_tb/dut/test_handshakes.py::test_a_sound_unit_passes_and_wrong_ones_fail"
        ),
        "test_widths_that_the_lint_warns_of": (
            "rtl_tb/locate/test_search.py::test_lines_that_the_lint_warns_of_come_first"
        ),
    },
    "rtl_tb/dut/test_exclude.py": {
        "test_a_fault_elsewhere_is_found_and_its_smallest_example_counts": (
            "rtl_tb/check/test_check.py::test_a_wrong_f_is_found_named_and_placed"
        ),
    },
    "rtl_tb/dut/test_vhdl.py": {
        "test_what_synthesis_leaves_out_refuses_no_unit": (
            "rtl_tb/dut/test_init.py::test_what_synthesis_leaves_out_refuses_no_unit"
        ),
    },
    "rtl_tb/engines/test_builds.py": {
        "test_a_build_without_its_program_is_no_build": ("::test_damage_beside_the_program"),
        "test_a_source_that_is_saved_while_it_compiles": ("::test_a_source_that_changes_and_changes_back"),
        "test_all_runs_of_a_check_are_of_one_build": ("::test_a_build_is_found_again"),
        "test_many_find_one_damaged_build_at_once": ("::test_a_damaged_build_is_found_out_before_it_runs"),
    },
    "rtl_tb/engines/test_fast.py": {
        "test_the_harness_is_compiled_once_for_all_units": (
            "rtl_tb/engines/test_builds.py::test_a_build_is_found_again"
        ),
    },
    "rtl_tb/flows/test_examples.py": {
        "test_a_wrong_unit_fails_the_step_and_leaves_what_the_action_keeps": (
            "::test_the_example_calls_the_action_with_inputs_that_it_has"
        ),
    },
    "rtl_tb/locate/test_search.py": {
        "test_the_report_says_what_was_found": ("::test_a_planted_fault_is_found"),
        "test_a_search_takes_what_was_read_before": ("::test_a_planted_fault_is_found"),
        "test_on_one_processor_the_text_has_its_turn_before_slow_hypotheses": (
            "::test_a_planted_fault_is_found"
        ),
        "test_one_change_of_the_text_is_more_than_several_faults": (
            "::test_of_equal_changes_the_likeliest_comes_first"
        ),
    },
    "rtl_tb/prove/test_proof.py": {
        "test_a_fused_dot_add_is_proved": ("::test_what_the_comparison_allows_is_no_difference"),
        "test_the_command_shows_a_counterexample_explained": (
            "::test_a_rare_fault_is_refuted_by_operands_that_the_simulator_gets_wrong"
        ),
    },
    "rtl_tb/qualify/test_equivalence.py": {
        "test_a_rare_difference_gives_operands_on_which_the_simulator_differs": (
            "rtl_tb/prove/test_proof.py::test_a_rare_fault_is_refuted_by_operands_that_the_simulator_gets_wrong"
        ),
    },
    "rtl_tb/qualify/test_qualify.py": {
        "test_survivors_are_proved_refuted_or_open": (
            "rtl_tb/qualify/test_equivalence.py::test_what_is_no_transaction_is_open_and_says_why"
        ),
    },
}
"""By file and test: the test that keeps its rule by default, on a smaller unit or one stage at a time;
`::test` is one of the same file."""


def leave_to_the_long_run(items: Iterable[pytest.Item]) -> None:
    """Marks all other cases `long`, and the tests of `LONG`."""
    seen: Counter[str] = Counter()
    for item in items:
        name = item.nodeid.partition("tests/")[2].partition("[")[0]
        file, _, function = name.partition("::")
        if function in LONG.get(file, ()):
            item.add_marker(pytest.mark.long)
        if name in ONE_IN:
            if seen[name] % ONE_IN[name]:
                item.add_marker(pytest.mark.long)
            seen[name] += 1
