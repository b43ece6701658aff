"""Documents, messages, comments and identifiers use the standard terms of the field.

Each entry is a word or phrase that this repository does not use, and the term to use instead. The list is short on
purpose: it holds phrases that a reader who knows other simulators would have to guess, and names that were replaced.
"""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

WORDS = {
    r"\b(?:comes?|came|coming) round\b": "wraps around, recurs",
    r"(?:comes?|goes)_round(?:_|\b)": "wraps_around",
    r"\b(?:gives?|gave|giving) way\b": "yields the core, is replaced, drains",
    r"(?:gives?|giving)_way(?:_|\b)": "yields, drains",
    r"\bfor ever\b": "without end, indefinitely, can starve or livelock",
    r"\b(?:taken|takes?|took) back\b": "aborted, undone, rolled back",
    r"\b(?:taken|takes?)_back(?:_|\b)": "undone, rolled_back",
    r"\blives? twice\b": "is executed twice",
    r"\b(?:goes|go|going) (?:its|their) own way\b": "is independent",
    r"\bhappens? (?:that happens? )?by itself\b": "is scheduled, is pending",
    r"\bon the last energy\b": "using residual energy",
    r"\bhears? of\b": "is notified of",
    r"\b(?:comes?|came) to rest\b": "drains, is quiesced",
    r"\b(?:runs?|ran) dry\b": "drains",
    r"\b(?:under|on (?:its|their)) way\b(?! (?:down|up|back))": "in progress, in flight",
    r"\b(?:identifiers?|TxIDs?) (?:that )?(?:bears?|borne|is born)\b": "uses, is assigned",
    r"\bbearers?\b": "user, owner",
    r"\bmultipl(?:y|ies) throughput by\b": "sensitivity range of throughput",
    r"\bcuts? the power\b": "power fails",
    r"\bclean cut\b": "clean power failure",
    r"\bspeaks? of\b": "names",
    r"(?i)\b(?:marksman|gallery|scribe|uprooted|uproots?|transplanted)\b": "selector, recorder, detach",
    r"\b(?:Shot|Blow|Tape|Tale|Patience|Uprooted)\b": "Crash, PowerFault, TimelineData, WaitMode, DetachedProgram",
    r"\bstore_simply\b": "store_fast_path",
    r"\b(?:let_happen|take_notice|next_happening)\b": "process_until, process_event, next_event",
    r"\bsnapshot marks?\b": "snapshot point",
}
FORBIDDEN = [(re.compile(pattern), instead) for pattern, instead in WORDS.items()]

PLACES = ["crates", "guest", "tests", "tools", "python", "docs", "fuzz", "machines", "campaigns", "*.md"]
TEXT = {".rs", ".py", ".md", ".toml", ".h", ".hpp", ".cpp", ".c", ".S", ".yml", ".txt"}
# The history of changes says what things were called; this list names what it forbids.
EXCEPT = {"CHANGELOG.md", "tests/architecture/test_words.py"}


def files(place: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", place], cwd=ROOT, capture_output=True, text=True, check=True)
    inside = [name for name in listed.stdout.splitlines() if place != "*.md" or "/" not in name]
    return [name for name in inside if Path(name).suffix in TEXT and name not in EXCEPT]


def test_the_places_hold_files() -> None:
    assert all(files(place) for place in PLACES)


@pytest.mark.parametrize("place", PLACES)
def test_standard_terms(place: str) -> None:
    found = [
        f"{name}:{number}: '{match.group()}': use {instead}"
        for name in files(place)
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        for pattern, instead in FORBIDDEN
        if (match := pattern.search(line))
    ]
    assert not found, "\n".join(found)


def test_the_list_finds_what_it_forbids() -> None:
    samples = ["the log comes round", "aborted and taken back once", "a store on its way home", "it waits for ever"]
    for sample in samples:
        assert any(pattern.search(sample) for pattern, _ in FORBIDDEN), sample
    for sample in ["the log wraps around", "undone and retried once", "a store in flight", "a request on its way down"]:
        assert not any(pattern.search(sample) for pattern, _ in FORBIDDEN), sample
