"""Generates DEVIATIONS.md from `python/durasim/assumptions.toml` and `sensitivity.csv`."""

from __future__ import annotations

import durasim
from durasim.runs.assumptions import (
    MEASURED,
    NO_EFFECT,
    NOT_MEASURED,
    Assumption,
    assumptions,
    assumptions_of,
    changes,
    effect_text,
    headline,
    relative_throughput,
)
from durasim.runs.sensitivity import not_varied

INTRODUCTION = """# Deviations

Generated from `python/durasim/assumptions.toml` by `make generate`.

Where a paper is silent, contradicts itself, or states something that this model does not do, durasim makes an
assumption. Code, presets and the registry cite its key. An entry lists the paper and the silent section, the
assumption, the parameter that changes it, the alternatives, and their effect; its link leads to the full text, next to
the mechanism. `durasim designs NAME` lists those of a design. No assumption was chosen to match a published number that
scores; [hercules-regime](#hercules-regime) was chosen by numbers that are inputs for that reason.

An effect is that of an alternative, one at a time, as a multiple of the run as assumed: throughput relative to `opt`
under the same alternative, then pmem writes. Both show the smallest and the largest multiple over all measured designs.
Entries are sorted by the effect on throughput. An alternative that works only together with a second setting, such as
small FIFOs, is compared with the run that has this setting too. The runs are short, of earlier builds, and on `tiny`,
`hercules-tecs23-modern`, `tc-dac17` and `pinspect-micro20`; [the tables](docs/results/sensitivity.md) say what they
cannot show. [TRUST.md](TRUST.md#assumptions-that-move-the-comparison-most) has what was measured on `hercules-tecs23`
with its suite. *Settled*: all sources agree, or no source can decide. All others are open: a paper or a measurement may
settle them.
"""
EFFECT = "- Effect: "
MOST = "**Which assumption matters most.**"
SECTIONS = (
    (MEASURED, "Measured, largest effect first"),
    (NO_EFFECT, "No effect: within 1 %, or not reached by the workloads"),
    (NOT_MEASURED, "Not measured"),
)
SHOWN_PARAMETERS = 2


def deviations() -> str:
    """Returns the text of DEVIATIONS.md."""
    lines = [INTRODUCTION, by_design(), ""]
    for status, title in SECTIONS:
        found = [assumption for assumption in assumptions().values() if assumption.status == status]
        # Entries with equal effects, such as unmeasured ones, keep the order of the file.
        found.sort(key=lambda assumption: -round(headline(assumption), 2))
        lines += [f"## {title}", ""]
        for assumption in found:
            lines += [f"### {assumption.key}", "", entry(assumption), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def by_design() -> str:
    """Returns a table of the largest effect on the throughput of each design and its unmeasured assumptions."""
    lines = [
        "| design | largest effect on throughput | from | to | not measured |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for row in durasim.designs():
        if not row["assumptions"]:
            continue
        first = assumptions_of(row["name"])[0]
        ends = relative_throughput(first.key, row["name"])
        cells = [f"{end.value:.2f}" for end in ends] if ends else ["-", "-"]
        missing = len(not_varied(row["name"]))
        count = f"{missing} of {len(row['assumptions'])}"
        lines.append(f"| `{row['name']}` | [{first.key}](#{first.key}) | {' | '.join(cells)} | {count} |")
    return "\n".join(lines)


def entry(assumption: Assumption) -> str:
    """Returns the text of an entry below its heading."""
    place = assumption.paper if assumption.section == "none" else f"{assumption.paper}, {assumption.section}"
    parts = [f"{place}: {assumption.assumed}."]
    if assumption.parameters:
        more = ", …" if len(assumption.parameters) > SHOWN_PARAMETERS else ""
        named = ", ".join(f"`{parameter}`" for parameter in assumption.parameters[:SHOWN_PARAMETERS])
        parts.append(f"{named}{more} ({assumption.range}).")
    else:
        parts.append("Not configurable.")
    if assumption.status == MEASURED:
        text = effect_text(assumption)
        parts.append(f"{text[0].upper()}{text[1:]}.")
    if assumption.settled:
        parts.append("Settled.")
    return f"{' '.join(parts)} [More]({assumption.page}#{assumption.key})"


def with_effects(path: str, text: str) -> str:
    """Returns the text of a page with the measured effect in each entry of an assumption.

    An entry without a measured alternative keeps what it says.
    """
    table = f"{'../' * (path.count('/') - 1)}results/sensitivity.md"
    lines: list[str] = []
    key, is_replaced = "", False
    for line in text.split("\n"):
        if line.startswith("#"):
            key = line.removeprefix("### ")
        is_replaced &= line.startswith("  ")
        if line.startswith(EFFECT) and key in assumptions() and changes(key):
            effect = effect_text(assumptions()[key])
            lines.append(f"{EFFECT}{effect} ([table]({table}#{key})).")
            is_replaced = True
        elif not is_replaced:
            lines.append(line)
    return "\n".join(lines)


def leading(design: str) -> str:
    """Returns a sentence with the assumption that has the largest measured effect on the throughput of a design."""
    first = assumptions_of(design)[0]
    ends = relative_throughput(first.key, design)
    link = f"[{first.key}]({link_from(design, first.page, first.key)})"
    if ends is None:
        return f"{MOST} Of those of `{design}`, {link} has the largest measured effect."
    low, high = (f"{end.value:.2f}x" for end in ends)
    return f"{MOST} For the throughput of `{design}` in short runs {link}: {low} to {high}."


def link_from(design: str, page: str, key: str) -> str:
    """Returns the link from the page of a design to an entry."""
    if page == f"docs/designs/{design}.md":
        return f"#{key}"
    in_folder = page.removeprefix("docs/designs/")
    return f"{in_folder}#{key}" if in_folder != page else f"../{page.removeprefix('docs/')}#{key}"
