"""Designs query each planted fault in one place: on the line of the protocol that the fault breaks."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DESIGNS = ROOT / "crates/designs/src"

ASKS = re.compile(r"\.(?:is|skips|ignores|assumes|swaps)\(\s*(?:\w+::)*planted\w*::")
LISTS_OF_FAULTS = {"ALL", "EADR", "DISTRIBUTED", "WITH_VOLATILE_CACHES", "LOST_CACHES"}
COMMENT = re.compile(r"//.*")
LISTED = re.compile(
    r"^\s*(?:pub\(super\) const )?([A-Z][A-Z0-9_]*)(?:: PlantedFault)? =\s*(?:\"|PlantedFault \{)", re.MULTILINE
)

LISTS = {path.parent.name: path for path in sorted(DESIGNS.glob("*/planted.rs"))}


def _code(path):
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def _is_protocol(path):
    """Whether a file is neither the faults or tests of a design nor its parameters or registration."""
    parts = path.relative_to(DESIGNS).with_suffix("").parts[1:]
    return not any(part.startswith(("planted", "tests", "spec", "variant")) for part in parts)


def _protocol(design):
    """The files of a design, and of those that build on it."""
    files = [path for path in sorted(DESIGNS.rglob("*.rs")) if design in path.with_suffix("").parts]
    return [path for path in files if _is_protocol(path)]


def _asked(text):
    # What follows `mod tests` are unit tests of the file.
    return re.findall(r"\bplanted\w*::([A-Z0-9_]+)", text.split("mod tests {")[0])


def test_designs_with_planted_faults_are_found():
    assert len(LISTS) >= 7


def test_parameters_and_registration_do_not_ask_for_planted_faults():
    asking = {path for path in DESIGNS.rglob("*.rs") if ASKS.search(_code(path)) and not _is_protocol(path)}
    assert sorted(str(path.relative_to(ROOT)) for path in asking if "planted" not in path.stem) == []


def test_no_parameter_names_a_planted_fault():
    specs = [path for path in DESIGNS.rglob("spec.rs") if "planted" in _code(path)]
    assert sorted(str(path.relative_to(ROOT)) for path in specs) == []


@pytest.mark.parametrize("design", LISTS)
def test_every_listed_fault_breaks_the_protocol_in_one_place(design):
    lists = "\n".join(_code(path) for path in (DESIGNS / design).glob("planted*.rs"))
    listed = sorted(LISTED.findall(lists))
    assert len(listed) >= 10
    asked = [name for path in _protocol(design) for name in _asked(_code(path)) if name not in LISTS_OF_FAULTS]
    assert sorted(asked) == listed
