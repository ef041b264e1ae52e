"""What `make test` leaves to `make test-all`, so that it takes minutes.

`ONE_IN` has tests whose parameters show one rule on many subjects: random units, instructions, layouts. One
case in N of each runs by default. A test whose parameters are rules of their own, such as faults that have to
be found, has no place there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

ONE_IN = {
    "golden/catalog/test_accumulator.py::test_every_kind_comes_in_sequences": 4,
    "golden/catalog/test_catalog.py::test_a_name_resolves_exactly_where_the_chip_has_it": 12,
    "golden/catalog/test_ieee_units.py::test_every_rounding_is_exact": 2,
    "golden/catalog/test_tensix.py::test_floats_agree_with_rationals": 6,
    "golden/catalog/test_unit_files.py::test_an_instruction_as_the_file_of_a_unit": 5,
    "golden/circuit/test_specification.py::test_every_operand_of_tiny_formats": 2,
    "golden/circuit/test_specification.py::test_examples_answer_as_the_reference": 4,
    "golden/circuit/test_specification.py::test_flags_of_every_sum_near_the_least_number": 10,
    "golden/circuit/test_specification.py::test_instructions_answer_as_the_reference": 6,
    "golden/circuit/test_specification.py::test_units_with_any_keys_answer_as_the_reference": 10,
    "golden/circuit/test_windows.py::test_terms_of_every_distance_are_added_exactly": 10,
    "golden/cover/test_coverage.py::test_a_unit_with_a_faulty_key_is_covered": 4,
    "golden/functions/test_functions.py::test_some_groups_of_codes_have_the_digests_of_the_gpu": 6,
    "golden/identify/test_datapath.py::test_without_faults_it_is_the_core": 8,
    "golden/identify/test_fixed_point.py::test_integers_of_signal_processors_are_found": 2,
    "golden/identify/test_missing_operands.py::test_a_dissection_is_continued": 2,
    "golden/identify/test_missing_operands.py::test_a_function_is_found_with_the_operands_that_it_takes": 2,
    "golden/identify/test_named_faults.py::test_a_clamp_that_is_off_is_named": 2,
    "golden/identify/test_named_faults.py::test_a_fault_of_one_operation_is_named": 4,
    "golden/identify/test_named_faults.py::test_a_narrow_shift_of_the_last_normalisation_is_named": 4,
    "golden/identify/test_parts.py::test_bits_of_one_product_show_what_each_pass_reads": 2,
    "golden/identify/test_relations.py::test_a_fault_of_an_integer_unit_is_named": 3,
    "golden/kernels/test_blocks.py::test_blocks_have_the_bits_of_the_whole": 2,
    "golden/kernels/test_finding.py::test_a_product_with_more_addends": 4,
    "golden/kernels/test_product.py::test_operands_are_converted": 3,
    "golden/kernels/test_product.py::test_split_k": 4,
    "golden/kernels/test_triton_dot.py::test_a_loop_of_dots_gives_what_an_h100_answered": 9,
    "golden/model/test_blocks.py::test_exact_sums_far_apart": 2,
    "golden/model/test_blocks.py::test_examples": 5,
    "golden/model/test_blocks.py::test_formats_whose_powers_of_two_lie_far_apart": 3,
    "golden/model/test_blocks.py::test_multiply_adds_round_as_requested": 5,
    "golden/model/test_blocks.py::test_random_units": 5,
    "golden/model/test_blocks.py::test_wherever_operands_lie": 10,
    "golden/model/test_device_text.py::test_a_planted_fault_is_another_unit": 2,
    "golden/model/test_doubles.py::test_nans_of_chains": 4,
    "golden/model/test_doubles.py::test_products_of_aligned_factors": 5,
    "golden/model/test_doubles.py::test_random_units": 5,
    "golden/model/test_integers.py::test_every_layout": 5,
    "golden/model/test_integers.py::test_every_shape_and_depth": 5,
    "golden/model/test_integers.py::test_the_largest_sums_at_both_ends_of_32_bits": 3,
    "golden/model/test_kernels.py::test_a_changed_step_changes_the_kernel": 2,
    "golden/model/test_kernels.py::test_c_alone_with_scaled_groups": 7,
    "golden/model/test_kernels.py::test_exponents_in_bytes": 3,
    "golden/model/test_kernels.py::test_large_matrices_find_their_largest_exponents_in_parts": 3,
    "golden/model/test_kernels.py::test_small_matrices_share_a_tile": 10,
    "golden/model/test_models_agree.py::test_every_instruction_runs_the_same_on_both_paths": 6,
    "golden/model/test_models_agree.py::test_reference_general_and_lanes_agree": 6,
    "golden/model/test_reference.py::test_the_reference_is_the_oracle": 8,
    "golden/model/test_reference.py::test_the_reference_is_the_oracle_for_searched_cases": 2,
    "golden/model/test_registers.py::test_random_units": 4,
    "golden/model/test_scaled_groups.py::test_other_results_of_scaled_groups": 4,
    "golden/model/test_scaled_groups.py::test_the_ends_of_scaled_groups": 2,
    "golden/number/test_formats.py::test_decode_is_ml_dtypes": 3,
    "golden/number/test_formats.py::test_limits_are_the_largest_and_smallest_finite_codes": 3,
    "golden/number/test_formats.py::test_to_float_is_decode": 3,
    "golden/number/test_rounding.py::test_convert_keeps_every_value_and_normalises": 2,
    "golden/number/test_rounding.py::test_round_to_code_about_every_power_of_two": 8,
    "golden/number/test_rounding.py::test_round_to_code_is_the_oracles": 4,
    "golden/number/test_wide_integers.py::test_exact_integer_sums": 4,
    "golden/program/test_bounds.py::test_every_number_of_the_reference_is_within_its_bounds": 3,
    "golden/program/test_bounds.py::test_random_units_keep_their_bounds": 5,
    "golden/program/test_fixed_point.py::test_products_shifted_by_a_constant": 4,
    "golden/program/test_integers.py::test_integer_additions_round_and_clamp_every_time": 3,
    "golden/program/test_real_units.py::test_examples": 5,
    "golden/program/test_real_units.py::test_the_catalogue": 4,
    "golden/program/test_rules.py::test_every_zero_result_is_plus_zero": 3,
    "golden/program/test_step_views.py::test_every_number_fits_its_width": 4,
    "golden/program/test_stochastic.py::test_models_round_as_rationals_do": 8,
    "golden/proof/test_equality.py::test_the_verdict_is_what_all_operands_say": 4,
    "golden/publish/test_ieee.py::test_findings_hold": 2,
    "golden/publish/test_ieee.py::test_fma_chain_rounds_every_step": 3,
    "golden/publish/test_ieee.py::test_rounded_sum_is_one_ieee_rounding": 4,
    "golden/publish/test_instruction_page.py::test_only_hopper_claims_captured_results": 3,
    "golden/publish/test_instruction_page.py::test_special_values_are_what_the_core_answers": 5,
    "golden/publish/test_instruction_page.py::test_the_example_is_executed": 6,
    "golden/publish/test_instruction_page.py::test_worst_errors_in_rationals": 2,
    "golden/stimuli/test_boundaries.py::test_a_nan_scale_over_data_that_are_all_zero": 2,
    "golden/stimuli/test_boundaries.py::test_a_sum_that_carries_far_has_one_bit_next_to_a_tie": 2,
    "golden/stimuli/test_boundaries.py::test_every_two_causes_of_a_special_result_meet": 4,
    "golden/stimuli/test_boundaries.py::test_totals_on_both_sides_of_a_clamp": 2,
    "golden/studies/test_claims.py::test_long_fp8_sums_are_those_of_exact_rationals": 3,
    "golden/vectors/test_c_header.py::test_dot_products_are_the_cores": 2,
    "golden/vectors/test_c_header.py::test_matrices_are_the_cores": 3,
    "golden/vectors/test_c_header.py::test_published_words": 3,
    "golden/vectors/test_c_header.py::test_registers_are_those_of_the_layouts": 3,
    "golden/vectors/test_vectors.py::test_expected_results_are_the_units": 5,
    "golden/vectors/test_vectors.py::test_words_are_what_the_definition_says_and_unpack_to_the_operands": 5,
    "golden/vectors/test_vectors_files.py::test_what_is_written_is_read": 10,
    "golden/vectors/test_vectors_manifest.py::test_what_is_no_manifest": 2,
    "hw_capture/campaign/test_campaign.py::test_a_floor_that_is_one_off_shows_at_the_floor_s_edge": 2,
    "hw_capture/campaign/test_campaign.py::test_every_kind_makes_legal_operands_with_the_core_s_results": 3,
    "hw_capture/campaign/test_campaign.py::test_operands_of_a_campaign_meet_planted_faults": 2,
    "hw_capture/products/test_layers.py::test_a_vector_times_a_matrix_without_the_matrix_unit": 4,
    "hw_capture/products/test_layers.py::test_sums_of_rows": 5,
    "hw_capture/products/test_products.py::test_the_plan_gives_what_the_library_gave": 5,
    "hw_capture/products/test_products.py::test_the_plan_has_the_digest_of_what_an_h100_gave": 6,
    "hw_capture/products/test_torch_runs.py::test_an_h200_gave_these_bits": 9,
    "hw_capture/products/test_triton_types.py::test_results_are_explained_and_others_are_not": 2,
    "hw_capture/timing/test_scalar.py::test_compiled_chains_of_other_targets": 8,
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
    "rtl_tb/dut/test_styles.py::test_ports_as_others_write_them": 5,
    "rtl_tb/engines/test_builds.py::test_a_damaged_build_is_found_out_before_it_runs": 2,
    "rtl_tb/engines/test_ghdl.py::test_a_sound_unit_passes": 2,
    "rtl_tb/locate/test_kinds.py::test_what_is_drawn_has_its_inverse": 3,  # one of each kind
    "rtl_tb/locate/test_kinds.py::test_what_is_missing_is_among_what_is_searched": 2,
    "rtl_tb/qualify/test_mutator.py::test_every_change_of_a_reference_source_is_of_one_line": 3,
    "rtl_tb/qualify/test_qualify.py::test_every_wanted_diagnosis_is_a_hypothesis_about_the_instruction": 5,
    "rtl_tb/rtl/test_rtl_nvidia.py::test_the_exponent_of_zeros": 2,
    "rtl_tb/runs/test_latency.py::test_a_unit_that_no_latency_explains_fails": 2,
    "rtl_tb/runs/test_latency.py::test_a_wrong_unit_has_a_latency": 3,
    "rtl_tb/runs/test_polarity.py::test_each_signal_of_a_handshake": 2,
    "rtl_tb/tb/test_vhdl.py::test_a_wrong_unit_and_bits_that_are_no_level_fail": 2,
}
"""By test: of how many cases one is run, from the first on. 5 has no factor in common with the three
instruction sets and the four kinds of random units, so that each of them comes."""


def leave_to_the_long_run(items: Iterable[pytest.Item]) -> None:
    """Marks all other cases `long`."""
    seen: Counter[str] = Counter()
    for item in items:
        name = item.nodeid.partition("tests/")[2].partition("[")[0]
        if name in ONE_IN:
            if seen[name] % ONE_IN[name]:
                item.add_marker(pytest.mark.long)
            seen[name] += 1
