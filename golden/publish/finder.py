"""The index of the site's finder: which page the names and words of instructions mean.

`static/finder.js` searches it as `mmagold list` searches the catalogue: every word means the architecture
(h100), is a type of an operand (nvfp4), or is part of a name (PTX, SASS, AMD). The words come from the same
specs.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import yaml

from golden.catalog import architectures
from golden.catalog.qualifiers import known_types
from golden.catalog.resolver import but_for_n, resolver
from golden.catalog.type_words import types_of
from golden.catalog.vendors import vendors
from golden.explain.markdown import anchor
from golden.number.format_words import format_words
from golden.paths import docs_folder
from golden.publish.families import Group, groups
from golden.publish.templating import Page

FILE = "finder_index.js"
"""Its name in the folder of the site's scripts."""
_CODE = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
_HEADING = re.compile(r"^#{2,4} (.+)$", re.M)


def script(pages: Sequence[Page]) -> str:
    """The index as a script, which also pages opened as files can load.

    `pages`: path, title, architecture, words for types with the share of the instructions that they mean,
    names (with * for N) and family of each page of instructions.
    `chips`: what each word for chips means: architectures, families (null for all), and what is known of a
    relative. `brands`: words before a card's number that say nothing. `types`: the words of a name whose
    order counts. `writings`: names of compilers and libraries, and what they mean. `formats`: words that mean
    one format, and its page.
    `others`: path, title, phrase and, of a heading, its page's title: of every page that is none of these, of
    each heading of a guide, and of what else people call a page (templates/search.yaml).
    """
    known = architectures.architectures()
    instructions = [_row(group) for name in known for group in groups(name)]
    index = {
        "pages": instructions,
        "chips": {
            word: [chip.architectures, chip.families, chip.why] for word, chip in resolver().words.items()
        },
        "brands": sorted({brand.lower() for one in vendors().values() for brand in one.brands}),
        "types": sorted(known_types()),
        "writings": [
            [pattern.pattern.replace("?P<", "?<"), re.sub(r"\\(\d)", r"$\1", name)]
            for one in vendors().values()
            for pattern, name in one.writings
        ],
        "formats": {
            word: meaning.formats[0]
            for word, meaning in format_words().items()
            if _is_one(meaning.formats, meaning.scales)
        },
        "others": list(_others([page for page in pages if _is_other(page.path)])),
    }
    return f"window.MMAGOLD_FINDER = {json.dumps(index, separators=(',', ':'))};\n"


def phrases() -> dict[str, list[str]]:
    """What else people call a page, by its path without .md."""
    text = (Path(__file__).parent / "templates" / "search.yaml").read_text("utf-8")
    found: dict[str, list[str]] = yaml.safe_load(text)
    return found


def _others(pages: Sequence[Page]) -> Iterator[list[str]]:
    known = phrases()
    for page in pages:
        path = _html(page.path)
        for phrase in (page.title, *known.get(page.path.removesuffix(".md"), ())):
            yield [path, page.title, phrase]
        if "/" not in page.path and (docs_folder() / page.path).is_file():
            text = (docs_folder() / page.path).read_text("utf-8")
            for heading in _HEADING.findall(_CODE.sub("", text)):
                yield [f"{path}#{anchor(heading)}", heading, heading, page.title]


def names(group: Group) -> list[str]:
    """Every name of a page's instructions, PTX, SASS and AMD, with * for N in the sweeps over it."""
    chip = architectures.get_architecture(group.architecture)
    found: dict[str, None] = {}
    for ins in group.variants:
        found |= dict.fromkeys(but_for_n(name) for name in (*chip.spellings(ins.name), *ins.sass))
    return list(found)


def _row(group: Group) -> list[object]:
    counts = Counter(word for ins in group.variants for word in types_of(ins))
    types = {word: round(counts[word] / len(group.variants), 2) for word in format_words() if counts[word]}
    family = group.representative.family
    return [_html(group.path), group.title, group.architecture, types, names(group), family]


def _is_one(formats: Iterable[str], scales: str | None) -> bool:
    return scales is None and len(list(formats)) == 1


def _is_other(path: str) -> bool:
    return not path.startswith(("instructions/", "sources/", "vectors/"))


def _html(path: str) -> str:
    return path.removesuffix(".md") + ".html"
