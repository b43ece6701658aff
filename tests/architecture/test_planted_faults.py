"""Designs query planted faults only in the code of the broken steps, never in the text of a protocol."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DESIGNS = ROOT / "crates/designs/src"

ASKS = re.compile(r"\bfault\s*\.is\(|\.is\(\s*(?:\w+::)*planted\w*::")
COMMENT = re.compile(r"//.*")
LISTED = re.compile(
    r"^\s*(?:pub\(super\) const )?([A-Z][A-Z0-9_]*)(?:: PlantedFault)? =\s*(?:\"|PlantedFault \{)", re.MULTILINE
)

LISTS = {path.parent.name: path for path in sorted(DESIGNS.glob("*/planted.rs"))}


def _code(path):
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def _may_ask(path):
    parts = path.relative_to(DESIGNS).with_suffix("").parts[1:]
    return any(part.startswith(("steps", "planted", "tests")) for part in parts)


def _steps(design):
    return [path for path in (DESIGNS / design).rglob("*.rs") if any(p.startswith("steps") for p in path.parts)]


def test_designs_with_planted_faults_are_found():
    assert len(LISTS) >= 7


def test_protocols_do_not_ask_for_planted_faults():
    asking = {path for path in DESIGNS.rglob("*.rs") if ASKS.search(_code(path))}
    wrong = {path for path in asking if not _may_ask(path)}
    assert sorted(str(path.relative_to(ROOT)) for path in wrong) == []


@pytest.mark.parametrize("design", LISTS)
def test_every_listed_fault_breaks_a_step(design):
    lists = "\n".join(_code(path) for path in (DESIGNS / design).glob("planted*.rs"))
    listed = set(LISTED.findall(lists))
    assert len(listed) >= 10
    steps = "\n".join(_code(path) for path in _steps(design))
    planted = set(re.findall(r"\bplanted\w*::([A-Z0-9_]+)", steps))
    assert planted == listed
