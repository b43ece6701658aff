"""Sources of the models: the paper of a design, what other papers say about it, or recollection."""

from __future__ import annotations

ITS_PAPER = "its paper"
RECALLED = "not read: a summary, recalled numbers, and Hercules"
OF_THESIS = "not read: the SPHT-eADR thesis"
OURS = "our own logs"
SOURCES = {
    "opt": "none needed",
    "swl-flush": OURS,
    "swl-eadr": OURS,
    "sp": "TC, which names it",
    "sp-indirect": "TC, which names it",
    "hercules": ITS_PAPER,
    "tc": ITS_PAPER,
    "kiln": "not read: Hercules and TC",
    "proteus": RECALLED,
    "fwb": RECALLED,
    "picl": RECALLED,
    "hoop": RECALLED,
    "lad": ITS_PAPER,
    "lad-base": ITS_PAPER,
    "lad-llc": ITS_PAPER,
    "autopersist": "not read: P-INSPECT",
    "ideal-r": ITS_PAPER,
    "p-inspect--": ITS_PAPER,
    "p-inspect": ITS_PAPER,
    "htm-sgl": ITS_PAPER,
    "spht-eadr": ITS_PAPER,
    "spht-eadr-flush": ITS_PAPER,
    "spht": OF_THESIS,
    "nv-htm": OF_THESIS,
}
"""The source of each design. A variant on a machine with eADR has the source of its design."""
NOT_READ, NOT_STATED = "not read", "not stated"


def source_of(variant: str) -> str:
    """Returns what the model of a variant was made from; a prototype may not have said it."""
    return SOURCES.get(variant) or SOURCES.get(variant.removesuffix("-eadr"), NOT_STATED)


def not_read() -> dict[str, list[str]]:
    """Returns the designs whose own papers were not read, by what was read instead."""
    found: dict[str, list[str]] = {}
    for design, source in SOURCES.items():
        if source.startswith(NOT_READ):
            found.setdefault(source.removeprefix(f"{NOT_READ}: "), []).append(design)
    return found
