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
the mechanism. `durasim designs NAME` lists those of a design. No assumption was chosen to match a published number.

Effects are those of alternatives, varied one at a time: throughput relative to `opt` under the same alternative, by
which entries are sorted, and pmem writes, each as a multiple of the unchanged run, the smallest and the largest over
all measured designs. The runs are short, of earlier builds, and on `tiny`, `hercules-tecs23-modern`, `tc-dac17` and
`pinspect-micro20`, not on `hercules-tecs23` with its suite; [the tables](docs/results/sensitivity.md) list their
limits. If an alternative needs a second change to have an effect, such as FIFOs of 8 entries, the effect is that of
both. *Settled*: sources agree or no source can decide. All others are open: a paper or a measurement may still settle
them.
"""
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
