"""Every catalogued instruction is on exactly one page; pages have readable, unique, stable addresses."""

from __future__ import annotations

import collections
import re

import pytest

import golden
from golden.publish.families import group_of, groups, own_group


@pytest.mark.parametrize("architecture", golden.architectures())
def test_groups_are_a_partition_of_the_catalogue(architecture: str) -> None:
    names = collections.Counter(ins.name for group in groups(architecture) for ins in group.variants)
    assert names == collections.Counter(ins.name for ins in golden.instructions(architecture))


@pytest.mark.parametrize("architecture", golden.architectures())
def test_slugs_and_titles_are_unique_within_an_architecture(architecture: str) -> None:
    found = groups(architecture)
    assert len({group.slug for group in found}) == len({group.title for group in found}) == len(found)
    assert len({group.slug.lower() for group in found}) == len(found), (
        "a file system may not tell cases apart"
    )
    assert all(re.fullmatch(r"[a-z0-9_-]+", group.slug) for group in found)
    assert all(len(group.title) <= 90 for group in found)


@pytest.mark.parametrize("architecture", golden.architectures())
def test_a_group_computes_by_one_rule(architecture: str) -> None:
    """Held against the steps themselves, which the grouping does not look at: primitive steps but for K
    and the a, b formats."""
    for group in groups(architecture):
        rules = {tuple(dict.fromkeys(op.steps for op in ins.program.operations)) for ins in group.variants}
        assert len(rules) == 1, group.slug
        assert len({ins.family for ins in group.variants}) == 1


def test_an_nvidia_instruction_has_the_same_slug_on_every_architecture() -> None:
    slugs: dict[str, set[str]] = {}
    for architecture in golden.architectures():
        for group in groups(architecture):
            for ins in group.variants:
                slugs.setdefault(ins.name, set()).add(group.slug)
    assert {
        name: found for name, found in slugs.items() if len(found) > 1 and not name.startswith("v_")
    } == {}


def test_a_unit_of_a_file_is_a_group_of_its_own() -> None:
    unit = golden.load_instruction("spec/examples/bf16_flush.yaml")
    assert group_of(unit) == own_group(unit)
    assert group_of(unit).variants == (unit,)
