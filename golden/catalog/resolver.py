"""What names and words mean: one object for chips, instructions and searches.

    resolver().called("RTX 5090")                           # "rtx_blackwell"
    resolver().named("hopper", "HMMA.16816.F32")            # the listed names that a name means
    resolver().search("hopper", "h200 fp8")                 # the listed names that words fit

A name is found by these rules, the first that gives something:

1. it is listed, or another spelling of a listed name;
2. it has the qualifiers of one, in another order (golden/catalog/qualifiers.py);
3. it is a compiler's or a library's name for one (`writings` of spec/vendors);
4. it is its machine code (SASS);
5. it is words for types that one instruction has.

Whatever finds nothing is refused, with the names that differ from it in the fewest qualifiers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property, lru_cache

from golden.catalog import architectures, machine_code
from golden.catalog.architectures import Architecture, Entry
from golden.catalog.families import Variables, fill
from golden.catalog.qualifiers import Key, difference, key_of, plain
from golden.catalog.type_words import stored_block
from golden.catalog.vendors import vendors
from golden.errors import UnknownArithmeticError, UnknownNameError, nearest
from golden.number.format_words import FormatWord, format_word, format_words, plain_word

_SOME = 3
"""Names that a message gives as examples."""


@dataclass(frozen=True)
class Chip:
    """What a word for chips means: one architecture, several, or with `why` (what is known of it) a chip that
    is none of them. `families`: the families that it has, None for all; also for a word for a feature
    (AMX)."""

    architectures: tuple[str, ...]
    why: str = ""
    families: tuple[str, ...] | None = None

    @property
    def name(self) -> str | None:
        """The architecture, where the word means exactly one."""
        one = len(self.architectures) == 1 and not self.why and self.families is None
        return self.architectures[0] if one else None

    def has(self, architecture: str, entry: Entry) -> bool:
        """Whether the chip has an entry of an architecture."""
        chosen = self.families is None or entry.family.name in self.families
        return chosen and architecture in self.architectures


class Resolver:
    """Names and words of the spec folder. Tables are made when they are first needed."""

    # Chips --------------------------------------------------------------------------------------------------

    @cached_property
    def chips(self) -> dict[str, Chip]:
        """What each word for chips means, words as `plain_word` spells them.

        Raises:
            SpecError: a word means two architectures.
        """
        described = [architectures.get_architecture(name) for name in architectures.architectures()]
        found = {plain_word(one.name): Chip((one.name,)) for one in described}
        for one in described:
            for word in map(plain_word, one.words):
                if found.setdefault(word, Chip((one.name,))).name != one.name:
                    raise one.document.error(
                        f"'{word}' means {found[word].name} as well, expected one of the two"
                    )
        for one in described:
            for relative in one.relatives:
                chip = Chip((one.name,), relative.why, relative.families)
                for word in map(plain_word, relative.names):
                    if word in found:
                        raise one.document.error(f"'{word}' means {found[word].architectures[0]} as well")
                    found[word] = chip
        for word, chip in (*_groups(described).items(), *_features(described).items()):
            found.setdefault(word, chip)
        return found

    def chip(self, word: str) -> Chip | None:
        """What a word for chips means; None where it means none. A brand before it counts nothing: GeForce
        RTX 4090 is 4090."""
        if architectures.is_architecture(word):  # the others need not be read
            return Chip((word,))
        for spelled in (word, self._unbranded(word)):
            if (found := self.chips.get(plain_word(spelled))) is not None:
                return found
        return self._by_number.get(plain_word(self._unbranded(word)))

    @cached_property
    def _by_number(self) -> dict[str, Chip]:
        """The words without brands, where one chip is left: 4090."""
        found: dict[str, set[Chip]] = {}
        for name in architectures.architectures():
            for word in architectures.get_architecture(name).words:
                found.setdefault(plain_word(self._unbranded(word)), set()).add(Chip((name,)))
        return {word: chips.pop() for word, chips in found.items() if len(chips) == 1}

    def _unbranded(self, word: str) -> str:
        """A word without the brands before it, if a number is left."""
        parts = re.split(r"[\s_-]+", word.strip())
        while len(parts) > 1 and parts[0].lower() in self._brands and any(map(_has_digit, parts[1:])):
            parts = parts[1:]
        return " ".join(parts)

    @cached_property
    def _brands(self) -> frozenset[str]:
        return frozenset(brand.lower() for vendor in vendors().values() for brand in vendor.brands)

    @cached_property
    def words(self) -> dict[str, Chip]:
        """Every word for chips, also words without brands: what the site's finder searches."""
        return {**self._by_number, **self.chips}

    def meant(self, word: str) -> str | None:
        """The name of the architecture that a word means: its own, a card's (h100, RTX 5090), a target's
        (sm_90); None where it means none or several."""
        chip = self.chip(word)
        return None if chip is None else chip.name

    def called(self, word: str) -> str:
        """Returns the name of the architecture that a word means (see `meant`).

        Raises:
            UnknownNameError: it means none; the message names the chip's relative, or near words.
        """
        name = self.meant(word) if isinstance(word, str) else None
        if name is None:
            raise self._no_chip(str(word))
        return name

    def _no_chip(self, word: str) -> UnknownNameError:
        chip, known = self.chip(word), ", ".join(architectures.architectures())
        if format_word(word) is not None:
            hint = (
                f"; '{word}' is a type of operands: mmagold list {word} lists the instructions that have it"
            )
        elif chip is not None and chip.why:
            hint = f": {chip.why}; nearest: {', '.join(map(self._card, chip.architectures))}"
        elif chip is not None:
            where = ", ".join(chip.architectures)
            return UnknownNameError(
                f"'{word}' is no one architecture, it is on {where}; say which (mmagold list {word})"
            )
        else:
            hint = nearest(word, self.known_chips())
        return UnknownNameError(f"unknown architecture '{word}'{hint or f', expected one of {known}'}")

    def _card(self, name: str) -> str:
        """The first card of an architecture with its name: b200 (blackwell)."""
        cards = architectures.get_architecture(name).devices
        card = self._unbranded(cards[0]) if cards else " "
        return name if " " in card else f"{plain_word(card)} ({name})"

    def known_chips(self) -> list[str]:
        """The words that mean an architecture."""
        return [*architectures.architectures(), *(word for word, chip in self.words.items() if not chip.why)]

    # Names --------------------------------------------------------------------------------------------------

    def named(self, architecture: str, name: str) -> list[str]:
        """The listed names that `name` means on an architecture; several are for the caller to decide.

        Raises:
            UnknownArithmeticError: the architecture has it, but what it computes is not public.
        """
        chip = architectures.get_architecture(architecture)
        if name in chip.names():
            return [name]
        found = self._spelled(architecture, name)
        if found:
            return [found]
        written = self.rewritten(architecture, name)
        for one in written:
            if spelled := self._written(architecture, one):
                return spelled
        for one in (name, *written):
            self._refuse_unknown(architecture, one)
        return self._machine(architecture).get(key_of(name), ("", []))[1]

    def of_types(self, architecture: str, text: str) -> list[str]:
        """The listed names with the types that every word means; [] where a word is no type."""
        return list(self.search(architecture, text)) if self.are_types(text) else []

    def are_types(self, text: str) -> bool:
        """Whether every word is a type of operands."""
        return bool(text.split()) and all(format_word(word) for word in text.split())

    def rewritten(self, architecture: str, name: str) -> list[str]:
        """The names, with * for what arguments decide, that compilers and libraries mean by `name`."""
        found = []
        for pattern, text in architectures.get_architecture(architecture).maker.writings:
            if match := pattern.fullmatch(name.removeprefix("@")):
                said = match.expand(text).lower()
                # the separators are those of the name that is meant; a group that is not there leaves none
                found.append(said.replace("..", ".").rstrip(".") if "." in text else said.replace(".", "_"))
        return found

    def _spelled(self, architecture: str, name: str) -> str | None:
        """The listed name with the qualifiers of `name`, in any of its spellings."""
        key = key_of(name)
        return self._keys(architecture, key[0]).get(key) if key[0] in self._heads(architecture) else None

    @cache  # noqa: B019 - there is one resolver
    def _heads(self, architecture: str) -> dict[str, list[tuple[str, str]]]:
        """Every spelling with its listed name, by what stands before the first point."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name, (entry, variables) in architectures.get_architecture(architecture).names().items():
            for spelling in entry.family.spellings(variables):
                found.setdefault(plain(spelling).split(".")[0], []).append((spelling, name))
        return found

    @cache  # noqa: B019
    def _keys(self, architecture: str, head: str) -> dict[Key, str]:
        """The listed name by the qualifiers of every spelling with one head."""
        found: dict[Key, str] = {}
        for spelling, name in self._heads(architecture)[head]:
            found.setdefault(key_of(spelling), name)
        return found

    @cache  # noqa: B019
    def _machine(self, architecture: str) -> dict[Key, tuple[str, list[str]]]:
        """Each machine instruction that a listed one becomes: its name, and the listed names, the plainest
        spelling of each only."""
        found: dict[Key, tuple[str, list[str]]] = {}
        for full, (entry, variables) in architectures.get_architecture(architecture).names().items():
            if len(entry.sass) == 1 and not entry.emulated and entry.family.is_plainest(variables):
                mnemonic = machine_code.names(entry, variables)[0]
                found.setdefault(key_of(mnemonic), (mnemonic, []))[1].append(full)
        return found

    def _written(self, architecture: str, pattern: str) -> list[str]:
        """The listed names that a rewritten one means."""
        if "*" not in pattern:
            found = self._spelled(architecture, pattern)
            return [found] if found else []
        fitting = [plain(pattern)]
        return [
            name
            for name, (entry, variables) in architectures.get_architecture(architecture).names().items()
            if any(fnmatchcase(plain(one), fitting[0]) for one in entry.family.spellings(variables))
        ]

    def _refuse_unknown(self, architecture: str, name: str) -> None:
        """Raises UnknownArithmeticError for a name whose arithmetic is not public, also as an assembler has
        it: without the types or the wave that end the names here."""
        described = architectures.get_architecture(architecture)
        unknown, stem = described.unknown_names(), name.lower().removesuffix("*")
        wanted, longer = key_of(name), (f"{stem}.", f"{stem}_w")
        if "*" in stem:
            return
        for left_out, why in described.left_out.items():
            if key_of(left_out) == wanted or stem.startswith(f"{left_out.lower()}."):
                raise UnknownArithmeticError(
                    f"{architecture} has the instruction '{name}', but not here: {why}"
                )
        spelled = (item for one in described.unknown for item in one.names().items())
        found = [
            full for full, spellings in spelled if wanted in map(key_of, spellings) or full.startswith(longer)
        ]
        if found and not any(full.startswith(longer) for full in described.names()):
            several = f" (here {some(found)})" if found != [stem] else ""
            raise UnknownArithmeticError(
                f"{architecture} has the instruction '{name}'{several}, but its arithmetic is unknown: "
                f"{unknown[found[0]]}; who has the chip finds it with mmagold dissect"
            )

    def known_names(self, architecture: str) -> list[str]:
        """The full names of an architecture's instructions, then the SASS names that can stand for one."""
        found = architectures.get_architecture(architecture)
        native = (entry for entry in found.entries if len(entry.sass) == 1 and not entry.emulated)
        return [
            *found.names(),
            *(mnemonic for entry in native for mnemonic in machine_code.first_names(entry)),
        ]

    # Searches -----------------------------------------------------------------------------------------------

    def split(self, text: str) -> list[str]:
        """The words of a search: separated by spaces, or by the colon as in b200:nvfp4."""
        found = []
        for word in text.split():
            head, colon, rest = word.partition(":")
            apart = colon and not rest.startswith(":") and self.chip(head) is not None
            found += [part for part in (head, rest) if part] if apart else [word]
        return found

    def search(self, architecture: str, text: str) -> Iterator[str]:
        """The names of an architecture's instructions that every word of `text` fits: the word means the
        architecture, a relative or a feature of it, is a type of an operand, means the instruction, or is
        part of one of its names (PTX, SASS, AMD)."""
        chips, rest = self._unmet(architecture, text)
        meant = {word: frozenset(self._meant_quietly(architecture, word)) for word in rest}
        kinds = {word: format_word(word) for word in rest}
        parts = {word: plain(word) for word in rest}
        spelled = self._plainly_spelled(architecture)
        for name, (entry, variables) in architectures.get_architecture(architecture).names().items():
            if all(chip.has(architecture, entry) for chip in chips) and all(
                name in meant[word] or parts[word] in spelled[name] or _fits(kinds[word], entry, variables)
                for word in rest
            ):
                yield name

    @cache  # noqa: B019
    def _plainly_spelled(self, architecture: str) -> dict[str, str]:
        """All plain names of each instruction (PTX, SASS, AMD), one a line."""
        return {
            name: "\n".join(
                map(plain, (*entry.family.spellings(variables), *machine_code.names(entry, variables)))
            )
            for name, (entry, variables) in architectures.get_architecture(architecture).names().items()
        }

    def in_name(self, architecture: str, text: str, name: str) -> bool:
        """Whether every word means the architecture or is part of `name`."""
        return all(plain(word) in plain(name) for word in self._unmet(architecture, text)[1])

    def remarks(self, text: str) -> list[str]:
        """What is known of the chips among the words of a search that are only relatives of what it shows."""
        words = [text] if self.chip(text) is not None else self.split(text)
        chips = {word: chip for word in words if (chip := self.chip(word)) is not None and chip.why}
        return [f"{word}: {chip.why}" for word, chip in chips.items()]

    def _meant_quietly(self, architecture: str, word: str) -> list[str]:
        try:
            return self.named(architecture, word) if len(word) > len("hmma") else []
        except UnknownArithmeticError:
            return []

    def _unmet(self, architecture: str, text: str) -> tuple[list[Chip], list[str]]:
        """The chips of a search that mean the architecture, and the other words; "RTX 5090" is one word where
        all of it means one."""
        whole = self.chip(text)
        if whole is not None:
            return ([whole], []) if architecture in whole.architectures else ([], [text])
        chips, rest = [], []
        for word in self.split(text):
            chip = self.chip(word)
            if chip is not None and architecture in chip.architectures:
                chips.append(chip)
            else:
                rest.append(word)
        return chips, rest

    def having(self, text: str) -> list[str]:
        """The architectures with an instruction that every word fits."""
        return [one for one in architectures.architectures() if any(self.search(one, text))]

    # Messages -----------------------------------------------------------------------------------------------

    def hint(self, architecture: str, name: str) -> str:
        """The end of a message: where an unknown name is known, what has it as a part, or what is near."""
        prefix, _, rest = name.partition(":")
        if rest and self.meant(prefix) not in (None, architecture):
            return f"; '{prefix}' is another architecture"
        elsewhere = [other for other in architectures.architectures() if self._is(other, name)]
        if elsewhere:
            near = self.near(name, [architecture])
            return f" (it exists on {', '.join(elsewhere)}{f'; here {near}' if near else ''})"
        return (
            self.listed(name, [architecture])
            or self.listed(name, architectures.architectures())
            or _after("; nearest: ", self.near(name, [architecture]))
            or nearest(name, self.known_names(architecture))
        )

    def _is(self, architecture: str, name: str) -> bool:
        described = architectures.get_architecture(architecture)
        listed = name in described.names() or self._spelled(architecture, name) is not None
        return listed or any(self._written(architecture, one) for one in self.rewritten(architecture, name))

    def near_anywhere(self, name: str) -> str:
        """The end of a message: the instructions that `mmagold list NAME` shows, else the names that are
        near."""
        every = architectures.architectures()
        return (
            self.listed(name, every)
            or _after("; nearest: ", self.near(name, every))
            or nearest(name, (full for one in every for full in self.known_names(one)))
        )

    def near(self, name: str, among: Iterable[str]) -> str:
        """The names that differ from one in the fewest qualifiers, each with what differs: never a type in
        silence."""
        found: dict[str, tuple[float, int, str]] = {}
        for one in among:
            for requested in (*(text.strip("*") for text in self.rewritten(one, name)), name):
                for sweep, names in self._writing(one, requested).items():
                    if sweep not in found and difference(requested, names[0]) is not None:
                        apart = {known: difference(requested, known) for known in names}
                        cost, known, text = min((d.cost, known, d.text) for known, d in apart.items() if d)
                        found[sweep] = cost, len(found), f"{known} ({text})"
        if not found:
            return ""
        best = sorted(found.values())
        return ", ".join(text for cost, _, text in best[:_SOME] if cost <= best[0][0] + 1)

    def _writing(self, architecture: str, name: str) -> dict[str, list[str]]:
        """The names that are written as `name` is, listed ones or machine code; one sweep over N is one
        entry."""
        machine = name[:2].isupper() and architectures.get_architecture(architecture).maker.machine
        # Characters of a name for which others like it are looked for.
        longest = 1000
        return self._sweeps(architecture, bool(machine)) if len(name) < longest else {}

    @cache  # noqa: B019
    def _sweeps(self, architecture: str, machine: bool) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        mnemonics = (mnemonic for mnemonic, _ in self._machine(architecture).values())
        for name in mnemonics if machine else architectures.get_architecture(architecture).names():
            found.setdefault(but_for_n(name), []).append(name)
        return found

    def search_hint(self, text: str, architecture: str | None = None) -> str:
        """The end of the message of a search that found nothing: a word that no instruction has, with what is
        near it; or where the instructions are that have all the words, if not where they were looked for."""
        if (whole := self.chip(text)) is not None and whole.why:
            return f": {whole.why}"
        chips = {word: self.meant(word) for word in self.split(text)}
        rest = [word for word, chip in chips.items() if self.chip(word) is None and self.chip(text) is None]
        for word in rest:
            if not self.having(word):
                known = [*self.known_chips(), *format_words()]
                return f"; '{word}' is in no name or type{nearest(word, known) or self.near_anywhere(word)}"
        requested = {chip for chip in (*chips.values(), architecture and self.called(architecture)) if chip}
        where = self.having(" ".join(rest)) if rest and requested else []
        if not where or requested & set(where):
            return ""
        return f"; '{' '.join(rest)}' is on {', '.join(where)}"

    def listed(self, name: str, among: list[str]) -> str:
        """The instructions that `mmagold list NAME` shows; empty where it shows none."""
        chip = self.meant(name)
        if chip is not None:
            what = "an architecture" if name == chip else f"{chip}, an architecture"
            return f"; '{name}' is {what}: mmagold list {name} lists its instructions"
        found = [(one, list(self.search(one, name))) for one in among if name.strip()]
        count = sum(len(names) for _, names in found)
        if count == 0:
            return ""
        several = len(among) > 1
        examples = [
            f"{one}:{full}" if several else full
            for one, names in found
            for full in names[: 1 if several else None]
        ]
        return f"; '{name}' is in the names or types of {count}, such as {some(examples)}"


@lru_cache(maxsize=1)
def resolver() -> Resolver:
    """The resolver of the spec folder."""
    return Resolver()


def but_for_n(name: str) -> str:
    """The name with an asterisk for N, the same for the instructions of one sweep over N."""
    return re.sub(r"(m\d+n)\d+(k\d+)", r"\1*\2", name)


def some(names: Iterable[str], count: int = _SOME) -> str:
    """The first few, one of each sweep over N."""
    found = list({but_for_n(name): name for name in reversed(list(names))}.values())[::-1]
    return ", ".join(found[:count]) + (", ..." if len(found) > count else "")


def several(architecture: str, name: str, found: list[str]) -> UnknownNameError:
    """The error for a name that means several instructions."""
    # How many names a message lists if a name means several.
    several = 6
    text = some(found, several)
    more = text.count(", ") + 1 < len(found)
    where = f"; mmagold list {architecture} {name} lists them" if more else ""
    return UnknownNameError(f"'{name}' names {len(found)} instructions of {architecture}: {text}{where}")


def _groups(described: list[Architecture]) -> dict[str, Chip]:
    """The words that several architectures share, vendors and product lines, with all that have them."""
    found: dict[str, list[str]] = {}
    for one in described:
        for word in {plain_word(text) for text in (*one.groups, one.vendor, one.line) if text}:
            found.setdefault(word, []).append(one.name)
    return {word: Chip(tuple(names)) for word, names in found.items()}


def _features(described: list[Architecture]) -> dict[str, Chip]:
    """The words for features (AMX), each with the architectures and families that it means."""
    found: dict[str, dict[str, set[str]]] = {}
    for one in described:
        for family in (*(part.family for part in one.entries), *(part.family for part in one.unknown)):
            for word in map(plain_word, family.words):
                found.setdefault(word, {}).setdefault(one.name, set()).add(family.name)
    return {
        word: Chip(tuple(names), families=tuple(sorted(set().union(*names.values()))))
        for word, names in found.items()
    }


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _after(head: str, text: str) -> str:
    return f"{head}{text}" if text else ""


def _fits(kind: FormatWord | None, entry: Entry, variables: Variables) -> bool:
    """Whether an operand has the type that a word names."""
    if kind is None:
        return False
    family = entry.family
    operands = {operand: fill(fmt, variables) for operand, fmt in family.formats.items()}
    return kind.fits(operands, stored_block(fill(family.scale_block, variables), family.sparse))
