"""The memory system consists of parts that do not depend on it, and its requests call each other without cycles."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SYSTEM = Path(__file__).resolve().parents[2] / "crates/machine/src/system"
PARTS_FOLDER = SYSTEM.parent / "parts"
# Each part: its type, its file and its folder.
PARTS = {
    "Agenda": "agenda",
    "BlockCounts": "block_counts",
    "Caches": "caches",
    "DesignPort": "design_port",
    "Filters": "filters",
    "Interconnect": "interconnect",
    "LineLocks": "line_locks",
    "Memories": "memories",
    "Observers": "observers",
    "OpenTransactions": "open_transactions",
    "PersistBuffers": "persist_buffers",
    "StallAttribution": "stall_attribution",
    "WorkList": "work_list",
}
COMMENT = re.compile(r"//.*")
TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod tests \{.*", re.S)


def _code(path):
    return TESTS.sub("", COMMENT.sub("", path.read_text(encoding="utf-8")))


def _files(part):
    stem = PARTS[part]
    folder = PARTS_FOLDER / stem
    return [PARTS_FOLDER / f"{stem}.rs", *(sorted(folder.rglob("*.rs")) if folder.is_dir() else [])]


def _requests():
    files = list(SYSTEM.rglob("*.rs"))
    methods = {path: "".join(re.findall(r"^impl System \{(.*?)^\}", _code(path), re.S | re.M)) for path in files}
    return {path.relative_to(SYSTEM).as_posix(): code for path, code in methods.items() if code}


def test_no_part_knows_the_system():
    files = set(PARTS_FOLDER.rglob("*.rs"))
    assert {PARTS_FOLDER / f"{stem}.rs" for stem in PARTS.values()} <= files
    for path in files:
        assert not re.search(r"\bSystem\b", _code(path)), path


def test_the_system_holds_parts_alone():
    code = _code(SYSTEM / "mod.rs")
    fields = re.search(r"pub struct System \{(.*?)\n\}", code, re.S).group(1)
    types = set(re.findall(r"\w+: (\w+)", fields))
    assert types == {*PARTS, "Geometry", "Domain"}
    assert not re.search(r"\bpub\b", fields)


@pytest.mark.parametrize("part", PARTS)
def test_the_fields_of_a_part_are_its_own(part):
    code = "".join(map(_code, _files(part)))
    body = re.search(rf"\bstruct {part}\b[^{{;]*\{{(.*?)\n(?: {{4}})?\}}", code, re.S).group(1)
    assert re.search(r"\w: \w", body) and not re.search(r"\bpub\b", body)


def test_parts_use_each_other_one_way():
    uses = {}
    for part in PARTS:
        code = "".join(map(_code, _files(part)))
        uses[part] = {other for other in PARTS if other != part and re.search(rf"\b{other}\b", code)}
    # Raises CycleError with the cycle.
    assert set(TopologicalSorter(uses).static_order()) == set(PARTS)


def test_requests_call_each_other_one_way():
    requests = _requests()
    defined = {f: name for name, code in requests.items() for f in re.findall(r"^    .*?\bfn (\w+)", code, re.M)}
    calls = {}
    for name, code in requests.items():
        called = re.findall(r"\b(?:self|s|system)\.(\w+)\(|\bSystem::(\w+)\(", code)
        calls[name] = {defined[f] for pair in called for f in pair if f in defined} - {name}
    assert any(calls.values())
    assert set(TopologicalSorter(calls).static_order()) >= set(calls)


def test_tasks_are_worked_off_by_requests_alone():
    for path in (SYSTEM / "work").glob("*.rs"):
        if path.name != "complete.rs":
            assert not re.search(r"\.(work_off|complete)\(", _code(path)), path
