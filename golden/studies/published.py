"""What the papers print about the findings: spec/studies/*.yaml."""

from __future__ import annotations

from functools import lru_cache

from golden.paths import spec_folder
from golden.yamlfile import Section, read


@lru_cache(maxsize=8)
def published(study: str) -> Section:
    """The printed numbers for a study, from spec/studies/<study>.yaml; raises SpecError where the file is
    missing or wrong."""
    document = read(spec_folder() / "studies" / f"{study}.yaml")
    document.take("source", str)
    return document
