"""The pages of the studies: the index, and for each study its findings, figures and tables as `mmagold
study` gives them."""

from __future__ import annotations

from functools import partial

from golden import studies
from golden.explain.markdown import figure, link
from golden.publish.families import group_of
from golden.publish.templating import Page, render
from golden.studies.draw import only_style
from golden.studies.study import Study

_RECORDED = "reports/studies-h200.md"
"""The report of a run of the studies on a GPU."""


def pages() -> list[Page]:
    """Returns studies/index.md and a page for each study."""
    index = Page("studies/index.md", "Studies", write_index)
    return [
        index,
        *(
            Page(f"studies/{name}.md", studies.title(name), partial(write_study, name))
            for name in studies.names()
        ),
    ]


def write_index() -> str:
    """The list of studies: question, source, command."""
    rows = [
        (link(studies.title(name), f"studies/{name}.md"), studies.question(name), studies.source(name))
        for name in studies.names()
    ]
    return render("studies", first=studies.names()[0], rows=rows)


def write_study(name: str) -> str:
    """Runs a study at its default size and writes its page.

    Raises:
        ToolMissing: matplotlib is not installed.
    """
    from golden.publish.pictures.plots import inline

    found = studies.run(name)
    with only_style():
        drawn = [(item, item.draw()) for item in found.figures]
    pictures = [
        figure(_sized(inline(one, f"{name}-{item.name}", item.caption)), item.caption) for item, one in drawn
    ]
    recorded = _RECORDED if studies.asks_chips(found.name) else ""
    return render("study", found=found, pictures=pictures, recorded=recorded, units=_units(found))


def _units(found: Study) -> list[list[str]]:
    """What was run, linked to its pages, and what the model of each rests on."""
    return [
        [
            link(unit.chip, f"architectures/{unit.architecture}.md"),
            link(f"`{unit.ins.name}`", group_of(unit.ins).path),
            unit.ins.evidence.kind,
        ]
        for unit in found.units
    ]


def _sized(svg: str) -> str:
    """The picture as wide as a phone, larger where there is room; its text has the size of the page's."""
    return svg.replace('style="', 'style="width:min(100%,32rem);', 1)
