"""docs/contract.md names each hook with its bit, each verdict and each action of the contract, and no others."""

import re

import pytest

from document_blocks import ROOT

PAGE = (ROOT / "docs/contract.md").read_text(encoding="utf-8")
SOURCES = {
    name: (ROOT / f"crates/contract/src/{name}.rs").read_text(encoding="utf-8")
    for name in ("hooks", "state", "verdict", "action")
}
COMMENT = re.compile(r"//.*")


def _section(heading):
    return re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def _rows(heading):
    rows = [
        [cell.strip() for cell in line.split(" | ")]
        for line in re.findall(r"^\| (.*) \|$", _section(heading), re.MULTILINE)
    ]
    return rows[2:]


def _body(source, head):
    return COMMENT.sub("", re.search(rf"^{head} \{{\n(.*?)^\}}", source, re.MULTILINE | re.DOTALL)[1])


def _variants(source, name):
    return set(re.findall(r"^    ([A-Z]\w*)", _body(source, f"pub enum {name}"), re.MULTILINE))


def _names(text):
    return set(re.findall(r"`(\w+)", text))


def test_each_method_of_a_design_is_explained():
    traits = [
        _body(SOURCES["hooks"], "pub trait Durability: AnyState \\+ Send"),
        _body(SOURCES["hooks"], "pub trait AnyState"),
        _body(SOURCES["state"], "pub trait Stateful: Durability \\+ Clone \\+ 'static"),
    ]
    methods = {method for trait in traits for method in re.findall(r"^    fn (\w+)", trait, re.MULTILINE)}
    methods -= {"kept", "kept_mut"}
    assert methods <= _names(PAGE) | set(re.findall(r"`Durability::(\w+)", PAGE)), methods - _names(PAGE)


def test_each_bit_belongs_to_a_hook():
    bits = set(re.findall(r"^    ([A-Z_]+) = \d+,", SOURCES["hooks"], re.MULTILINE))
    stated = {bit for row in _rows("Hooks") for bit in _names(row[1])}
    assert stated == bits - {"HARDWARE_TX"}


@pytest.mark.parametrize("verdict", ["Gate", "Probe", "Evict", "Fill", "Merge", "Accept", "FlushVerdict", "Scanned"])
def test_each_answer_is_explained(verdict):
    row = next(row for row in _rows("Verdicts") if row[0] == f"`{verdict}`")
    assert _variants(SOURCES["verdict"], verdict) == {name for name in _names(row[1]) if name[0].isupper()}


def test_each_action_is_explained():
    stated = {name for row in _rows("Actions") for name in _names(row[1])}
    assert stated - {"Node"} == _variants(SOURCES["action"], "Action")
