"""The pages of the studies: the index, and for each study its findings, figures and tables as `mmagold
study` gives them."""

from __future__ import annotations

from functools import partial

from golden import studies
from golden.explain.markdown import code, figure, link, table
from golden.publish.families import group_of
from golden.publish.page import Page
from golden.studies.draw import only_style
from golden.studies.study import Study

_ASKED = "reports/studies-h200.md"
"""What a GPU answered when it was asked."""


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
    return "\n\n".join(
        [
            "# Studies",
            "What the papers found out about matrix units, as experiments on the models. Each page was "
            "computed when this site was built, with fixed seeds, and has the numbers that the papers print "
            "beside its own. On your machine:",
            code(
                "mmagold study                                # the list\n"
                f"mmagold study {studies.names()[0]}               # findings and tables\n"
                f"mmagold study {studies.names()[0]} --out figures # and files: text, CSV, SVG, PNG\n"
                f"mmagold study {studies.names()[0]} --samples 5000 --json",
                "sh",
            ),
            table(("study", "question", "after"), rows),
        ]
    )


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
    head = [f"# {found.title}", found.question, f"After {found.source}."]
    again = code(f"{found.command} --out figures", "sh")
    foot = f"Computed from {found.effort}" + ("; `--samples` takes another number." if found.random else ".")
    tables = [item.markdown() for item in found.tables]
    return "\n\n".join(
        [
            *head,
            "## Findings",
            found.findings,
            *(["## Figures", *pictures] if pictures else []),
            "## Tables",
            *tables,
            "## Units",
            _units(found),
            "## Run it",
            again,
            foot,
        ]
    )


def _units(found: Study) -> str:
    """What was run, linked to its pages, and what the model of each rests on."""
    rows = [
        (
            link(unit.chip, f"architectures/{unit.architecture}.md"),
            link(f"`{unit.ins.name}`", group_of(unit.ins).path),
            unit.ins.evidence.kind,
        )
        for unit in found.units
    ]
    asked = ""
    if studies.asks_chips(found.name):
        asked = f" `{found.command} --gpu` asks the GPU in your machine, too; {link('an H200', _ASKED)} was."
    return f"All numbers come from the models.{asked} What a model rests on:\n\n" + table(
        ("chip", "instruction", "evidence"), rows
    )


def _sized(svg: str) -> str:
    """The picture as wide as a phone, larger where there is room; its text has the size of the page's."""
    return svg.replace('style="', 'style="width:min(100%,32rem);', 1)
