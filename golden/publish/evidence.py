"""Why to believe a page: captured vectors with counts and hashes, campaigns, papers;
and the measured times."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

from golden.catalog.evidence_file import check_report
from golden.explain.markdown import code, figure, link, table
from golden.explain.specification import evidence_text, sources_text
from golden.files.inputs import read_json
from golden.instruction import Instruction
from golden.paths import docs_folder
from golden.publish.dot_text import name_argument
from golden.publish.families import Group
from golden.publish.variants import LISTED, captured_entry, manifest
from golden.vectors import captured

# Evidence ---------------------------------------------------------------------------------------------------


def evidence(group: Group) -> str:
    """Captured vectors, campaigns, published tables, sources, and the commands that make more."""
    parts = [_kinds(group), _vectors(group), _campaigns(group), _sources(group), _more(group)]
    return "\n\n".join(part for part in parts if part)


_MEANING = {
    "captured": "recorded on hardware; the vectors are in this repository and the model gives every one of "
    "them bit for bit",
    "published": "the rule is in a publication; no vectors of this architecture are in this repository",
    "derived": "argued from other instructions or from compiled code; no vectors of this architecture are "
    "in this repository",
}


def _kinds(group: Group) -> str:
    found: dict[tuple[str, str], int] = {}
    for ins in group.variants:
        key = ins.evidence.kind, " ".join(ins.evidence.source.split())
        found[key] = found.get(key, 0) + 1
    if group.representative.is_custom:
        return (
            "A unit of its own file; nothing stands behind it but the file itself "
            f"({evidence_text(group.representative)})."
        )
    rows = [(kind, str(count), _MEANING[kind], source) for (kind, source), count in found.items()]
    return table(("Evidence", "Variants", "Meaning", "Source"), rows)


def _vectors(group: Group) -> str:
    entries = [(ins, entry) for ins in group.variants if (entry := captured_entry(ins)) is not None]
    if not entries:
        return ""
    about = manifest(group.architecture)
    total = sum(entry["dots"] for _, entry in entries)
    files = f"{len(entries):,} file{'s' if len(entries) > 1 else ''}"
    told = (
        f"{total:,} results in {files}, recorded on an {captured.device_text(about['device'])}, "
        f"{about['date']}; see "
        f"{link('the list of all files', f'vectors/{group.architecture}/index.md')}."
    )
    rows = [
        (
            link(f"`{entry['file']}`", f"vectors/{group.architecture}/{entry['file']}"),
            f"{entry['tiles']:,}",
            f"{entry['dots']:,}",
            f"`{entry['sha256']}`",
        )
        for _, entry in entries
    ]
    listed = table(("File", "Tiles", "Results", "SHA-256"), rows)
    if len(rows) > LISTED:
        listed = f"<details>\n<summary>All {len(rows)} files</summary>\n\n{listed}\n\n</details>"
    return f"### Captured vectors\n\n{told}\n\n{listed}"


@cache
def campaigns() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """What was compared on GPUs without being recorded, by "architecture:instruction":
    (device, campaign) each."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for path in sorted((docs_folder() / "campaigns").glob("*.json")):
        if path.stem.endswith("_faults"):  # runs with a planted fault, to show that a fault is found
            continue
        report = read_json(check_report(path))
        for campaign in report["campaigns"]:
            key = f"{campaign['architecture']}:{campaign['instruction']}"
            found.setdefault(key, []).append((report["device"]["name"], campaign))
    return found


def _campaigns(group: Group) -> str:
    rows = []
    for ins in group.variants:
        for device, campaign in campaigns().get(f"{ins.architecture}:{ins.name}", []):
            rows.append(
                (
                    f"`{ins.name}`",
                    campaign["kind"],
                    f"{campaign['dots']:,}",
                    f"{campaign['mismatches']:,}",
                    device,
                )
            )
    if not rows:
        return ""
    tried, wrong = (sum(int(row[i].replace(",", "")) for row in rows) for i in (2, 3))
    told = (
        f"{tried:,} further dot products were compared on the device itself with the model's arithmetic, "
        f"with {wrong:,} mismatches; see {link('campaigns', 'campaign.md')}."
    )
    listed = table(("Instruction", "Operands", "Dot products", "Mismatches", "Device"), rows)
    if len(rows) > LISTED:
        listed = f"<details>\n<summary>All {len(rows)} campaigns</summary>\n\n{listed}\n\n</details>"
    return f"### Campaigns\n\n{told}\n\n{listed}"


def _sources(group: Group) -> str:
    from golden.publish.computation import notes

    lines = [f"- {source}" for source in sources_text(group.representative)]
    lines += [f"- Note: {note}" for note in notes(group.representative)]
    return "### Sources\n\n" + "\n".join(lines) if lines else ""


def _more(group: Group) -> str:
    ins = group.representative
    name = name_argument(ins)
    lines = [
        "# 20,000 operands and results for a simulator",
        f"mmagold vectors {name} --out {group.slug}.hex",
    ]
    lines += [
        "# check your unit against it",
        f"mmagold rtl init my_unit.sv --instruction {name} --out dut.yaml",
        "mmagold rtl check dut.yaml",
    ]
    if group.architecture in _recordable():
        pattern = ins.name.replace(".", r"\.")
        lines += [
            "# record more on a GPU",
            f"mmagold capture --arch {ins.architecture} --only '^{pattern}$' --out captured/",
        ]
    return "### More vectors\n\n" + code("\n".join(lines), "sh")


def _recordable() -> tuple[str, ...]:
    """Architectures that the capture kernels can be compiled for."""
    from golden.catalog import architectures

    return tuple(
        name
        for name in architectures.architectures()
        if any(entry.family.fixed.kernel for entry in architectures.get_architecture(name).entries)
    )


# Timing -----------------------------------------------------------------------------------------------------


@cache
def _timings() -> dict[tuple[str, str], list[Any]]:
    """Every figure of spec/timing by architecture and instruction."""
    from golden.catalog import timing as tables

    found: dict[tuple[str, str], list[Any]] = {}
    for name in tables.names():
        for one in tables.load(name):
            found.setdefault((one.architecture, one.instruction), []).append(one)
    return found


def figures(ins: Instruction) -> list[Any]:
    """The timing figures of an instruction (golden.catalog.timing.Figure)."""
    return _timings().get((ins.architecture, ins.name), [])


def timing(group: Group) -> str:
    """Latency, interval and best throughput of every variant that was measured, and one plot; empty where
    nothing is known."""
    rows = [row for ins in group.variants for row in _timing_rows(ins)]
    if not rows:
        return ""
    told = (
        "Cycles of the multiprocessor's clock. Completion: from issue to the result's next use, one warp. "
        "Interval: from one instruction to the next. SS, RS: A from shared memory, or from registers. FMA: "
        "multiply-adds of the whole shape, zeros of sparse operands and single bits included. How it was "
        f"measured: {link('timing', 'timing.md')}."
    )
    head = ("Instruction", "Device", "Completion", "Interval", "Best throughput", "At")
    sources = dict.fromkeys((one.device, one.source) for ins in group.variants for one in figures(ins))
    listed_sources = "\n".join(f"- {device}: {source}" for device, source in sources)
    listed = table(head, rows)
    if len(rows) > LISTED:
        listed = f"<details>\n<summary>All {len(rows)} measurements</summary>\n\n{listed}\n\n</details>"
    return "\n\n".join([told, listed, listed_sources, *_plot(group)])


def _timing_rows(ins: Instruction) -> list[tuple[str, ...]]:
    by_source: dict[tuple[str, str, str], list[Any]] = {}
    for one in figures(ins):
        variant = one.key.variant if one.key.variant in ("SS", "RS") else ""
        by_source.setdefault((one.device, one.source, variant), []).append(one)
    rows = []
    for (device, _, variant), found in by_source.items():
        plain = [one for one in found if one.key.variant == variant]
        best = max(
            (one for one in plain if one.quantity == "throughput" and one.high),
            key=lambda one: one.high,
            default=None,
        )
        at = f"{best.warps} warps, ILP {best.ilp}" if best is not None and best.warps else ""
        name = f"`{ins.name}`" + (f" ({variant})" if variant else "")
        peak = f"{best.high:,.1f} {best.unit}" if best is not None else ""
        rows.append(
            (name, device, _one(plain, "completion_latency"), _one(plain, "issue_interval"), peak, at)
        )
    return [row for row in rows if any(row[2:5])]


def _one(found: list[Any], quantity: str) -> str:
    """The first figure of a quantity: a number, or a range."""
    for one in found:
        if one.quantity == quantity and one.low is not None:
            return f"{one.low:g}" if one.value is not None else f"{one.low:g} to {one.high:g}"
    return ""


def _plot(group: Group) -> list[str]:
    """Throughput and latency by warps and ILP, of the first variant that was measured so."""
    from golden.publish.pictures import plots

    ordered = sorted(group.variants, key=lambda ins: ins is not group.representative)
    for ins in ordered:
        found = figures(ins)
        points = Counter(one.device for one in found if one.quantity == "latency" and one.warps is not None)
        device = max(points, key=lambda name: points[name], default=None)
        if device is not None:
            mine = [one for one in found if one.device == device]
            picture = plots.ilp_warps(ins.name, mine, "timing")
            return [
                figure(
                    picture,
                    f"{ins.name} on {device}: throughput and latency by warps and independent instructions "
                    "(ILP).",
                )
            ]
    return []


__all__ = ["campaigns", "evidence", "figures", "timing"]
