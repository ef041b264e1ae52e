"""What instructions are called in machine code (SASS)."""

from __future__ import annotations

from functools import cache
from string import Formatter

from golden.catalog import architectures
from golden.catalog.families import Variables, fill, shape_of
from golden.errors import nearest
from golden.number.formats import get_format


def names(entry: architectures.Entry, variables: Variables) -> tuple[str, ...]:
    """The machine instructions that a variant becomes; the first is the one that multiplies.

    Raises:
        SpecError: `sass` of the entry has a word that nothing fills.
    """
    used, formats, words = _words(entry.sass), entry.family.formats, {}
    for key in used & {"A", "B", "C", "D"}:
        words[key] = get_format(fill(formats[key.lower()], variables)).name.upper()
    if used & {"mnk", "mxnxk"}:
        shape = tuple(map(str, shape_of(variables, entry.section)))
        words |= {"mnk": "".join(shape), "mxnxk": "x".join(shape)}
    for word, (variable, texts) in entry.family.vendor.words.items():
        if variables.get(variable) in texts:
            words[word] = texts[variables[variable]]
    try:
        return tuple(template.format(**words) for template in entry.sass) if used else entry.sass
    except KeyError as error:
        missing = str(error.args[0])
        known = {*words, "A", "B", "C", "D", "mnk", "mxnxk"}
        raise entry.section.error(
            f"key 'sass' holds '{{{missing}}}', expected one of {', '.join(sorted(known))}"
            f"{nearest(missing, known)}",
            "sass",
        ) from None


@cache
def _words(templates: tuple[str, ...]) -> frozenset[str]:
    """The words in braces: what they do not name is not looked up, for thousands of variants."""
    return frozenset(word for template in templates for _, word, _, _ in Formatter().parse(template) if word)


def first_names(entry: architectures.Entry) -> set[str]:
    """The first mnemonics of an entry's variants that are spelt out one by one (not the sweeps over N)."""
    return {
        names(entry, variables)[0] for variables in ([] if entry.family.fixed.swept else entry.variants())
    }
