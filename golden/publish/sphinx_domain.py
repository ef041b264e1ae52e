"""The Sphinx domain `gpu`: every name of every instruction (PTX, SASS, AMD, Intel) is an object on its page.

The inventory of the site (objects.inv) has them as architecture:name, so that other projects' documentation
links to them through intersphinx; in pages of this one {gpu:instruction}`hopper:HMMA.16816.F32` does.
Sphinx's own search leaves them out: the finder knows them, and the words that people use for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sphinx.domains import Domain, ObjType
from sphinx.roles import XRefRole
from sphinx.util.nodes import make_refnode

from golden.catalog import architectures
from golden.errors import UnknownNameError
from golden.publish.families import Group, group_of, groups

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment


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
