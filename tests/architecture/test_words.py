"""Documents, messages, comments and identifiers use the standard terms of the field.

Each entry is a word or phrase that this repository does not use, and the term to use instead. The list is short on
purpose: it holds phrases that a reader who knows other simulators would have to guess, and names that were replaced.
"""

import re
import subprocess
from collections.abc import Iterator
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

# Patterns that are refused where all text follows them: the Python side of the repository, and some crates.
PATTERNS = {
    r"(?i)(?:\b|_)(?:whoever|nobody|somebody)(?:\b|_)": "requester, holder, observer, no, the passive",
    r"(?i)(?:\b|_)(?:told|tells?)(?:\b|_)": "reports, returns, is notified, distinguishes",
    r"(?i)\bso many\b": "this many, the number",
    r"(?i)\bfor so long\b": "for this time, a time limit",
    r"(?i)\bthe same (?:with|by|as|of)\b": "repeat the noun",
    r"(?i)(?:\b|_)behind(?:\b|_)": "after",
    r"(?i)\bof which\b": "with, in which, for which",
    r"(?i)(?:\b|_)but_for_|\bbut for\b": "except",
    r"(?i)\b(?:stands?|lies?) (?:in|there)\b": "is in, exists",
    r"(?i)\b(?:known|said) of\b": "about, for",
    r"(?i)\bthe compiled half\b": "the Rust core",
    r'^\s*"""(?:What|Which|Where|Who|Whose|How|Why)\b': "start a docstring with a noun or a verb",
    r"^\s*(?://[/!]?|/\*) (?:What|Which|Where|Who|Whose|How|Why) (?!.*\?)": "start a comment with a noun or a verb",
    r"^\s*//[/!] The same(?:[,.]| (?:on|where|for|in|after|without)\b)": "repeat the noun",
}
REFUSED_PATTERNS = [(re.compile(pattern), instead) for pattern, instead in PATTERNS.items()]
PATTERN_PLACES = [
    "python/durasim/*.py",
    "tools/*.py",
    "tests/*.py",
    "machines",
    "campaigns",
    "crates/cache",
    "crates/contract",
    "crates/crash",
    "crates/debugger",
    "crates/designs",
    "crates/isa",
    "crates/kernel",
    "crates/memory",
    "crates/models",
    "crates/binding",
    "crates/py",
    "crates/random",
    "crates/robustness",
    "crates/test_plans",
    "crates/types",
    "guest/bench",
    "guest/include",
    "guest/objects",
    "guest/stamp",
    "guest/structures",
    "guest/workloads/*.cpp",
    "guest/workloads/*.h",
]
PATTERN_CRATES = ["crates/core/*.rs", "crates/machine/*.rs"]
PATTERN_PLACES += PATTERN_CRATES
# A definition in the form of a relative clause, at the start of a doc comment or below one of its headings.
DOC_COMMENT = re.compile(r"^\s*//[/!]")
RELATIVE_CLAUSE = re.compile(r"^\s*//[/!] (?:What|Which|Where|Who|Whose|When|How|Why)\b")

PLACES = ["crates", "guest", "tests", "tools", "python", "docs", "fuzz", "machines", "campaigns", "*.md"]
TEXT = {".rs", ".py", ".md", ".toml", ".h", ".hpp", ".cpp", ".c", ".S", ".yml", ".txt"}
# The history of changes says what things were called; this list names what it forbids.
EXCEPT = {"CHANGELOG.md", "tests/architecture/test_words.py"}
# Files whose text comes from elsewhere, and parts of lines that are names or recorded text.
PATTERN_EXCEPT_FILES = {
    "python/durasim/documents/described.py": "generated from the Rust description of a run",
    "python/durasim/documents/described_machine.py": "generated from the Rust description of machines",
}
PATTERN_EXCEPT_TEXT = {
    "before-|told-|lock-not": "a pattern of names of planted faults",
    "inserted-behind-copy": "the name of a planted fault",
    "no-fence-behind-store": "the name of a planted fault",
    "reads_behind_drains": "the key of a counter",
    "let less of it lie there (shadow-bytes)": "a message of a guest runtime",
    '"run", "behind")': "an argument of a guest program",
    "one more bit to tell the MC if it needs to": "quoted from a paper",
    'PACKAGE_BUGREPORT="nobody"': "a macro of a third-party program",
    "write_behind_held_goes_home": "the test of a planted fault of a model",
    "fence_behind_": "names of planted faults, and a function of guest programs",
    "inserted_behind_copy": "the name of a planted fault",
    "is_unused_behind": "a function of a guest program",
    "enum class Region": "a name in a guest program",
    "Region::behind": "a name in a guest program",
    "Node* behind": "a name in a guest program",
    "shall come `behind`": "a name in a guest program",
    "uint64_t>(behind)": "a name in a guest program",
    "before->next, behind": "a name in a guest program",
    "wait_for_others(thread) : nobody": "a name in a guest program",
    "constexpr std::uint64_t nobody": "a name in a guest program",
    "return nobody;": "a name in a guest program",
    "victim != nobody": "a name in a guest program",
    "victim == nobody": "a name in a guest program",
    "an impossible one behind it": "a message of a guest program",
    "two entries behind each other": "a message of a guest program",
    "an overlap and none behind it": "a message of a guest program",
    "an array of which two random": "the summary of a guest program",
    "two random ones of which are": "the summary of a guest program",
    "needs at least so many lines": "a message of a guest program",
    "not that of so many paths": "a message of a guest program",
    "nobody has made object": "a message of a guest program",
    "records that nobody wrote": "a message of a guest program",
    "replies that nobody wrote": "a message of a guest program",
    "whether somebody refers to it": "a message of a guest program",
    "test_a_transaction_that_aborts_itself_leaves_nothing_and_is_told_its_cause": "cited in docs/designs",
    "test_without_room_in_the_shadow_area_the_program_is_told_and_ends": "cited in docs/designs",
}


def files(place: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", place], cwd=ROOT, capture_output=True, text=True, check=True)
    inside = [name for name in listed.stdout.splitlines() if place != "*.md" or "/" not in name]
    return [name for name in inside if Path(name).suffix in TEXT and name not in EXCEPT]


def test_the_places_hold_files() -> None:
    assert all(files(place) for place in PLACES)


def lines(place: str) -> Iterator[tuple[str, str, str]]:
    """Yields the file, the position and the text of each line."""
    for name in files(place):
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            yield name, f"{name}:{number}", line


@pytest.mark.parametrize("place", PLACES)
def test_standard_terms(place: str) -> None:
    found = [
        f"{position}: '{match.group()}': use {instead}"
        for _, position, line in lines(place)
        for pattern, instead in FORBIDDEN
        if (match := pattern.search(line))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("place", PATTERN_PLACES)
def test_plain_english(place: str) -> None:
    assert files(place)
    found = [
        f"{position}: '{match.group().strip()}': use {instead}"
        for name, position, line in lines(place)
        if name not in PATTERN_EXCEPT_FILES and not any(text in line for text in PATTERN_EXCEPT_TEXT)
        for pattern, instead in REFUSED_PATTERNS
        if (match := pattern.search(line))
    ]
    assert not found, "\n".join(found)


def relative_clauses(text: str) -> Iterator[tuple[int, str]]:
    """Yields the number and the text of each line at which a definition begins with a relative clause."""
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        begins = (
            not DOC_COMMENT.match(before) or before.strip() in ("//!", "///") or before.lstrip("/! ").startswith("# ")
        )
        if begins and RELATIVE_CLAUSE.match(line):
            yield number, line.strip()
        before = line


@pytest.mark.parametrize("place", PATTERN_CRATES)
def test_definitions_begin_with_a_noun(place: str) -> None:
    found = [
        f"{name}:{number}: {line}"
        for name in files(place)
        for number, line in relative_clauses((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_relative_clauses_are_found() -> None:
    text = "//! What is due.\n\n/// A line. It is\n/// where it was.\n/// # Errors\n/// What is refused.\nfn f() {}"
    assert [number for number, _ in relative_clauses(text)] == [1, 6]


def test_every_exception_is_used() -> None:
    everything = "\n".join(line for place in PATTERN_PLACES for _, _, line in lines(place))
    assert [text for text in PATTERN_EXCEPT_TEXT if text not in everything] == []
    assert [name for name in PATTERN_EXCEPT_FILES if not (ROOT / name).is_file()] == []


def test_patterns_match_what_they_refuse() -> None:
    refused = [
        "whoever asks first", "def tell_what_failed():", "after so many cycles", "the same by phase",
        "waits behind a fence", "a set of which one is free", "all but for one", "it stands in LIMITS.md",
        "what is said of it", '    """Which line leaves."""', "go on for so long", "    /// What a hook returns.",
    ]  # fmt: skip
    for sample in refused:
        assert any(pattern.search(sample) for pattern, _ in REFUSED_PATTERNS), sample
    for sample in [
        "the same name", "a title", '    """Whether it is free."""', "it lies at offset 8", "intellect",
        "// Whether it is free.",
    ]:  # fmt: skip
        assert not any(pattern.search(sample) for pattern, _ in REFUSED_PATTERNS), sample


def test_the_list_finds_what_it_forbids() -> None:
    samples = ["the log comes round", "aborted and taken back once", "a store on its way home", "it waits for ever"]
    for sample in samples:
        assert any(pattern.search(sample) for pattern, _ in FORBIDDEN), sample
    for sample in ["the log wraps around", "undone and retried once", "a store in flight", "a request on its way down"]:
        assert not any(pattern.search(sample) for pattern, _ in FORBIDDEN), sample
