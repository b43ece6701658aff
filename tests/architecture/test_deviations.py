"""DEVIATIONS.md explains every assumption that something cites, and nothing that nothing cites."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import durasim as ds
from durasim.sensitivity import band_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "DEVIATIONS.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### (\S+)$", PAGE, re.MULTILINE)
FIELDS = ("Paper", "Assumed", "Knob", "Alternatives", "Status")

# `[D:key]`, and `DEVIATIONS.md, key` even across the lines of a comment. `[D:key]` itself explains the notation.
CITATION = re.compile(r"\[D:([a-z0-9-]+)\]|DEVIATIONS\.md,\s+(?:///?\s+|#\s+)?([a-z0-9-]+)\)")
NOTATION = {"key"}
SOURCES = (
    "crates/**/*.rs", "machines/*.toml", "guest/**/*.h", "guest/**/*.cpp", "guest/**/*.toml", "tests/timing/*.py"
)  # fmt: skip


def _cited():
    cited = {}
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            for found in CITATION.finditer(path.read_text(encoding="utf-8")):
                cited.setdefault(found[1] or found[2], str(path.relative_to(ROOT)))
    for row in ds.designs():
        for key in row["assumptions"]:
            cited.setdefault(key, f"row {row['name']}")
    return {key: where for key, where in cited.items() if key not in NOTATION}


def _entry(key):
    return re.search(rf"^### {re.escape(key)}$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def test_every_citation_has_an_entry():
    missing = {key: where for key, where in _cited().items() if key not in HEADINGS}
    assert missing == {}


def test_every_entry_is_cited():
    assert [key for key in HEADINGS if key not in _cited()] == []


def test_no_entry_stands_twice():
    assert sorted(HEADINGS) == sorted(set(HEADINGS))


@pytest.mark.parametrize("key", HEADINGS)
def test_an_entry_says_everything(key):
    assert [field for field in FIELDS if f"- {field}: " not in _entry(key)] == []


@pytest.mark.parametrize("key", HEADINGS)
def test_a_table_has_been_measured(key):
    entry = _entry(key)
    if "<!-- measured" in entry:
        assert f"<!-- measured {key} -->\n| machine |" in entry, "run tools/sensitivity.py"
        assert "refused:" not in entry


def test_the_bands_are_those_of_the_tables():
    """What stands beside a row in tables comes from the measurements of the page and from nowhere else."""
    tool = runpy.run_path(str(ROOT / "tools" / "sensitivity.py"))
    assert (ROOT / "python/durasim/sensitivity.csv").read_text(encoding="utf-8") == tool["ratios"](PAGE)


def test_every_row_with_assumptions_has_a_band():
    """But `sp`, whose format has no knob."""
    rows = [row for row in ds.designs() if row["assumptions"]]
    assert [row["name"] for row in rows if band_of(row["name"]) is None] == ["sp"]
    opt = next(row for row in ds.designs() if not row["assumptions"])
    assert band_of(opt["name"]) is None


def test_a_knob_of_a_machine_exists():
    """Each `path.to.key` that an entry of a preset names is a path of the preset."""
    preset = tomllib.loads(ds.machine_toml("hercules-tecs23"))
    for key in HEADINGS:
        knob = re.search(r"^- Knob: (.*?)(?=^- )", _entry(key), re.MULTILINE | re.DOTALL)[1]
        for path in re.findall(r"`((?:core|l1i|l1d|l2|llc|interconnect|dram|pmem)\.[a-z_.0-9]+)`", knob):
            at = preset
            for part in path.rstrip(".").split("."):
                assert part in at, f"{key}: {path} is not in the preset"
                at = at[part]


def test_a_knob_of_a_design_exists():
    sections = ds.machine_schema()["properties"]["design"]["properties"]
    for key in HEADINGS:
        for design, field in re.findall(r"`design\.([a-z0-9-]+)\.([a-z_0-9]+)`", _entry(key)):
            assert field in sections[design]["properties"], f"{key}: design.{design}.{field} does not exist"
