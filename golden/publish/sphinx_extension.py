"""What the site adds to Sphinx: breadcrumbs over the pages below others, plain docstrings as
reStructuredText, and the domain `gpu`, in which every name of every instruction (PTX, SASS, AMD, Intel) is an
object on its page.

The inventory of the site (objects.inv) has the names as architecture:name, so that other projects'
documentation links to them through intersphinx; in pages of this one {gpu:instruction}`hopper:HMMA.16816.F32`
does. Sphinx's own search leaves them out: the finder knows them, and the words that people use for them.
"""

from __future__ import annotations

import gc
import html
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from sphinx.domains import Domain, ObjType
from sphinx.roles import XRefRole
from sphinx.util.nodes import make_refnode

from golden.catalog import architectures
from golden.errors import UnknownNameError
from golden.publish import navigation
from golden.publish.families import Group, group_of, groups

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Example|Note):$")
_ITEM = re.compile(r"[-*] |\d+\. ")
_ALIAS = re.compile(r"TypeAliasForwardRef\('([\w.]+)'\)")
_SPAN = re.compile(r"(`[^`]+`)")
_CELL = re.compile(r"<(t[dh])([^>]*)><p>((?:(?!</?p\b|</?t[dh]\b).)*)</p>\s*</\1>", re.S)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    _read_faster()
    app.add_domain(InstructionDomain)
    app.connect("html-page-context", _side_bar, priority=100)  # before the theme, which asks for the side bar
    app.connect("html-page-context", _neighbours, priority=100)
    app.connect("html-page-context", _breadcrumbs)
    app.connect("html-page-context", _lighten, priority=900)  # behind the theme, which makes the side bar
    # Before Napoleon, which reads Args: and the like.
    app.connect("autodoc-process-docstring", _docstring, priority=100)
    app.connect("autodoc-process-signature", _signature)
    app.connect("doctree-resolved", _dashes)
    app.connect("doctree-resolved", _remember_stems)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read_faster() -> None:
    """Saves a third of Sphinx's time. The pages are trees of a million nodes in all: docutils searches them
    with a generator for every node, and Python goes through them for garbage again and again."""
    from docutils import nodes

    everything = nodes.Node.findall

    def findall(
        self: Any,
        condition: Any = None,
        include_self: bool = True,
        descend: bool = True,
        siblings: bool = False,
        ascend: bool = False,
    ) -> Iterator[Any]:
        if siblings or ascend or not (include_self and descend):
            yield from everything(self, condition, include_self, descend, siblings, ascend)
            return
        kind = condition if isinstance(condition, type) else None
        waiting = [self]
        while waiting:
            node = waiting.pop()
            if condition is None or (isinstance(node, kind) if kind is not None else condition(node)):
                yield node
            if node.children:
                waiting += reversed(node.children)

    nodes.Node.findall = findall  # type: ignore[method-assign, assignment]
    gc.set_threshold(200_000, 20, 100)


_side_bars: dict[tuple[str, str], str] = {}
"""By folder and options: the side bar of its pages, in which none is the current one."""


def _side_bar(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Has the side bar made once for each folder, whose pages differ in what is marked as current alone.
    Sphinx copies and resolves all entries for each page, in half of the time in which it writes pages."""
    make: Callable[..., str] | None = context.get("toctree")
    if make is None:
        return
    own = posixpath.basename(app.builder.get_target_uri(page))

    def once(**options: Any) -> str:
        key = posixpath.dirname(page), repr(options)
        if key not in _side_bars:
            _side_bars[key] = without_current(make(**options), own)
        if navigation.is_listed(f"{page}.md"):
            return with_current(_side_bars[key], own)
        above = [context["pathto"](name) for name in navigation.parents(f"{page}.md")]
        return marked(_side_bars[key], above)

    context["toctree"] = once


_ENTRY = '<a class="reference internal" href="{}">'
_OWN_ENTRY = '<a class="current reference internal" href="#">'
_OPENED = re.compile(r"<(?P<closed>/?)(?:ul|li)\b[^>]*>")


def with_current(side_bar: str, address: str) -> str:
    """The side bar with the entry of this address as that of the page itself, and all around it marked, as
    Sphinx does it; as it is if it does not list the page."""
    before, entry, behind = side_bar.partition(_ENTRY.format(address))
    if not entry:
        return side_bar
    around: list[re.Match[str]] = []
    for tag in _OPENED.finditer(before):
        if tag["closed"]:
            around.pop()
        else:
            around.append(tag)
    parts, end = list[str](), 0
    for tag in around:  # <ul> has no class of its own, <li> has its level
        opened = '<ul class="current">' if tag[0] == "<ul>" else tag[0].replace('">', ' current">')
        parts += [before[end : tag.start()], opened]
        end = tag.end()
    return "".join([*parts, before[end:], _OWN_ENTRY, behind])


def without_current(side_bar: str, address: str) -> str:
    """What `with_current` was given to return this side bar."""
    side_bar = side_bar.replace(_OWN_ENTRY, _ENTRY.format(address))
    return side_bar.replace('<ul class="current">', "<ul>").replace(' current">', '">')


def marked(side_bar: str, above: Iterable[str]) -> str:
    """The side bar with the entries of these addresses marked as the way to the page, which it does not
    list."""
    for address in above:
        link = rf'"><a class="reference internal" href="{re.escape(address)}"'
        side_bar = re.sub(rf'(<li class="toctree-l\d)({link})', r"\1 current\2", side_bar)
    return side_bar


def _neighbours(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Gives the pages of an architecture's instructions the one before and the one behind, in the order
    of its table."""
    if not page.startswith("instructions/"):
        return
    from golden.publish.families import groups

    architecture = page.split("/")[1]
    order = [f"architectures/{architecture}", *(group.path[: -len(".md")] for group in groups(architecture))]
    place = order.index(page)
    for key, name in (("prev", order[place - 1]), ("next", next(iter(order[place + 1 :]), None))):
        if name in app.env.titles:
            title = html.escape(app.env.titles[name].astext())
            context[key] = {"link": context["pathto"](name), "title": title}


def _breadcrumbs(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Puts the way back, such as "Architectures > NVIDIA Hopper", over the page."""
    above = [name for name in navigation.parents(page) if name in app.env.titles]
    if not above or "body" not in context:
        return
    links = "".join(
        "<a "
        f'href="{html.escape(context["pathto"](name))}">{html.escape(app.env.titles[name].astext())}</a><span>&rsaquo;</span>'
        for name in above
    )
    context["body"] = f'<nav class="mg-crumbs" aria-label="Breadcrumbs">{links}</nav>{context["body"]}'


def _lighten(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Leaves out what every page repeats for nothing, a twenty-fifth of the site."""
    if "body" in context:
        context["body"] = lighter(context["body"])
    if "furo_navigation_tree" in context:
        context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
            'class="reference internal"', 'class="reference"'
        )


def lighter(body: str) -> str:
    """A page's body without the paragraphs that are all of a table's cell."""
    return _CELL.sub(r"<\1\2>\3</\1>", body)


def _dashes(app: Sphinx, doctree: Any, page: str) -> None:
    """Sphinx writes "name -- text" for parameters and errors, and leaves the dash to its typographic
    quotes, which are off."""
    from docutils import nodes

    for text in list(doctree.findall(nodes.Text)) if page.startswith("api/") else []:
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def _signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, arguments: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Aliases by their names; inside of other types Sphinx shows the object that stands for one."""
    return tuple(text and _ALIAS.sub(r"\1", text) for text in (arguments, returns))  # type: ignore[return-value]


def _remember_stems(app: Sphinx, doctree: Any, docname: str) -> None:
    """Has the search index stem each word once: all pages use the same few thousand words."""
    language = getattr(getattr(app.builder, "indexer", None), "lang", None)
    if language is not None and "stem" not in vars(language):
        language.stem = cache(language.stem)


def _docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_restructured(lines)


def as_restructured(lines: list[str]) -> list[str]:
    """A plain docstring as reStructuredText: an indented block that is no section
    and no list becomes a block of code.

    An indented line right below text goes on with it. Elsewhere the characters that mean something there are
    escaped; single backticks stay, as code.
    """
    out: list[str] = []
    opened: str | None = None  # the line that the indented text belongs to
    in_code = False
    for before, line in zip(["", *lines], lines, strict=False):
        indented = line.startswith(" ")
        if line.strip() and not indented:
            opened, in_code = line, False
        structured = opened is not None and (_SECTION.match(opened.strip()) or _ITEM.match(opened))
        if indented and line.strip() and not in_code and not structured:
            if before.strip():
                line = line.lstrip()
            else:
                out += ["", ".. code-block:: python" if _is_python(line) else ".. code-block:: text", ""]
                in_code = True
        if _SECTION.match(line) and out and out[-1].strip():
            out.append("")
        out.append(line if in_code else _escaped(line))
    return out


def _is_python(line: str) -> bool:
    return re.match(r"\s*(import |from |for |with |print\(|[\w, ]+ = |\w+(\.\w+)*\()", line) is not None


def _escaped(line: str) -> str:
    parts = _SPAN.split(line)
    for index in range(0, len(parts), 2):
        part = re.sub(r"(?<!^)(?<!^ )([*|])", r"\\\1", parts[index])
        parts[index] = re.sub(r"(?<=\w)_(?!\w)", r"\\_", part)
        if index and re.match(r"\w", parts[index]):
            parts[index] = "\\ " + parts[index]
    return "".join(parts)


class InstructionDomain(Domain):
    """See the module. It keeps nothing: the catalogue has it all."""

    name = "gpu"
    label = "GPU instruction"
    object_types = {"instruction": ObjType("instruction", "instruction")}  # noqa: RUF012  (Sphinx declares it so)
    roles = {"instruction": XRefRole()}  # noqa: RUF012

    def get_objects(self) -> Iterable[tuple[str, str, str, str, str, int]]:
        """(name, shown name, type, page, anchor, priority) of every name."""
        for name, page in objects():
            # The priority that keeps an object out of Sphinx's search.
            not_searched = -1
            yield name, name, "instruction", page, "", not_searched

    def resolve_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        typ: str,
        target: str,
        node: pending_xref,
        contnode: Element,
    ) -> Any:
        """A link to the page of the instruction that the role names; None where there is none."""
        from golden.catalog.lookup import resolve

        try:
            page = _page(group_of(resolve(target)))
        except UnknownNameError:
            return None
        return make_refnode(builder, fromdocname, page, "", contnode, target)

    def resolve_any_xref(self, *given: Any) -> list[tuple[str, Any]]:
        """The role `any` means no instruction: their names are too many to guess."""
        return []

    def merge_domaindata(self, docnames: Iterable[str], otherdata: dict[str, Any]) -> None:
        """Nothing was gathered."""


def objects() -> Iterator[tuple[str, str]]:
    """Every name with its architecture before it, hopper:HMMA.16816.F32, and its page without .md; a SASS
    name of several pages names the first."""
    for architecture in architectures.architectures():
        chip, seen = architectures.get_architecture(architecture), set()
        for group in groups(architecture):
            for ins in group.variants:
                machine = ins.sass if len(ins.sass) == 1 and not ins.emulated else ()
                for name in (*chip.spellings(ins.name), *machine):
                    if name not in seen:
                        seen.add(name)
                        yield f"{architecture}:{name}", _page(group)


def _page(group: Group) -> str:
    return group.path.removesuffix(".md")
