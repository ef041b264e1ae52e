"""Tests whose parameters show one rule on many subjects: random units, instructions, layouts.

`make test` runs one case in N of each (N is in `ONE_IN`), and `make test-all` all of them. A test whose
parameters are rules of their own, such as faults that have to be found, has no place here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

ONE_IN = {
    "golden/catalog/test_catalog.py::test_a_name_resolves_exactly_where_the_chip_has_it": 3,
    "golden/catalog/test_tensix.py::test_floats_agree_with_rationals": 3,
    "golden/catalog/test_unit_files.py::test_an_instruction_as_the_file_of_a_unit": 5,
    "golden/circuit/test_specification.py::test_flags_of_every_sum_near_the_least_number": 5,
    "golden/circuit/test_specification.py::test_instructions_answer_as_the_reference": 3,
    "golden/circuit/test_specification.py::test_units_with_any_keys_answer_as_the_reference": 5,
    "golden/circuit/test_windows.py::test_terms_of_every_distance_are_added_exactly": 5,
    "golden/identify/test_datapath.py::test_without_faults_it_is_the_core": 2,
    "golden/kernels/test_triton_dot.py::test_a_loop_of_dots_gives_what_an_h100_answered": 3,
    "golden/model/test_blocks.py::test_examples": 2,
    "golden/model/test_blocks.py::test_random_units": 5,
    "golden/model/test_blocks.py::test_wherever_operands_lie": 5,
    "golden/model/test_doubles.py::test_nans_of_chains": 4,
    "golden/model/test_doubles.py::test_random_units": 5,
    "golden/model/test_integers.py::test_every_layout": 5,
    "golden/model/test_integers.py::test_every_shape_and_depth": 5,
    "golden/model/test_kernels.py::test_c_alone_beside_scaled_groups": 7,
    "golden/model/test_kernels.py::test_small_matrices_share_a_tile": 5,
    "golden/model/test_models_agree.py::test_reference_general_and_lanes_agree": 3,
    "golden/model/test_reference.py::test_the_reference_is_the_oracle": 2,
    "golden/model/test_reference.py::test_the_reference_is_the_oracle_for_searched_cases": 2,
    "golden/number/test_rounding.py::test_round_to_code_about_every_power_of_two": 2,
    "golden/program/test_bounds.py::test_random_units_keep_their_bounds": 5,
    "golden/program/test_real_units.py::test_examples": 5,
    "golden/program/test_real_units.py::test_the_catalogue": 2,
    "golden/program/test_stochastic.py::test_models_round_as_rationals_do": 2,
    "golden/publish/test_ieee.py::test_rounded_sum_is_one_ieee_rounding": 2,
    "golden/publish/test_instruction_page.py::test_special_values_are_what_the_core_answers": 5,
    "golden/publish/test_instruction_page.py::test_the_example_is_executed": 3,
    "golden/publish/test_instruction_page.py::test_worst_errors_in_rationals": 2,
    "golden/vectors/test_c_header.py::test_matrices_are_the_cores": 3,
    "golden/vectors/test_c_header.py::test_registers_are_those_of_the_layouts": 3,
    "golden/vectors/test_vectors.py::test_expected_results_are_the_units": 5,
    "golden/vectors/test_vectors.py::test_words_are_what_the_definition_says_and_unpack_to_the_operands": 5,
    "golden/vectors/test_vectors_files.py::test_what_is_written_is_read": 5,
    "hw_capture/campaign/test_campaign.py::test_every_kind_makes_legal_operands_with_the_core_s_results": 3,
    "hw_capture/products/test_layers.py::test_a_vector_times_a_matrix_without_the_matrix_unit": 2,
    "hw_capture/products/test_layers.py::test_sums_of_rows": 5,
    "rtl_tb/check/test_exported.py::test_verilator_and_icarus_read_it_without_a_warning": 4,
    "rtl_tb/locate/test_kinds.py::test_what_is_drawn_has_its_inverse": 3,  # one of each kind
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
