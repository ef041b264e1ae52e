"""GPU campaigns with a planted fault: what billions of dot products tell where the recorded ones do not."""

from __future__ import annotations

from collections.abc import Iterator

from golden.catalog.evidence_file import check_report
from golden.explain.markdown import link
from golden.files.inputs import read_json
from golden.instruction import Instruction
from golden.paths import docs_folder
from golden.publish.evidence import campaigns


def sentences(ins: Instruction, parameter: str) -> Iterator[str]:
    """One sentence for each campaign that compared this instruction with a model whose parameter is wrong."""
    for path in sorted((docs_folder() / "campaigns").glob("*_faults.json")):
        report = read_json(check_report(path))
        for run in report["campaigns"]:
            if (run["architecture"], run["instruction"]) == (ins.architecture, ins.name) and parameter in run[
                "faults"
            ]:
                page = link("a campaign", "campaign.md#does-it-see-a-wrong-unit")
                yield (
                    f"On an {report['device']['name']}, {page} compared the instruction with a model whose "
                    f"{parameter} is {run['faults'][parameter]}: {run['mismatches']:,} of {run['dots']:,} "
                    f"dot products differ. {_right(ins)}"
                )


def _right(ins: Instruction) -> str:
    """The same comparison with the model as it is."""
    runs = [run for _, run in campaigns().get(f"{ins.architecture}:{ins.name}", [])]
    wrong, dots = (sum(run[key] for run in runs) for key in ("mismatches", "dots"))
    return f"With the spec's own value {wrong:,} of {dots:,} do." if runs else ""
