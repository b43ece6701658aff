"""DEVIATIONS.md explains every assumption that something cites, and nothing that nothing cites."""

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import durasim as ds
from durasim.sensitivity import Measured, measurements, range_of, ratios

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "DEVIATIONS.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### (\S+)$", PAGE, re.MULTILINE)
FIELDS = ("Paper", "Assumed", "Knob", "Alternatives", "Effect", "Status")

# `[D:key]`, and `DEVIATIONS.md, key` even across the lines of a comment. `[D:key]` itself explains the notation.
CITATION = re.compile(r"\[D:([a-z0-9-]+)\]|DEVIATIONS\.md,\s+(?:///?\s+|#\s+)?([a-z0-9-]+)\)")
NOTATION = {"key"}
SOURCES = (
    "crates/**/*.rs", "machines/*.toml", "guest/**/*.h", "guest/**/*.cpp", "guest/**/*.toml", "tests/timing/*.py"
)  # fmt: skip


@cache
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


def test_an_entry_has_no_table():
    assert [key for key in HEADINGS if re.search(r"^\|", _entry(key), re.MULTILINE)] == []


def test_what_is_measured_has_an_entry_with_its_effect():
    measured = {run.key for run in measurements()}
    assert measured <= set(HEADINGS)
    linked = {key for key in HEADINGS if f"docs/results/sensitivity.md#{key})" in _entry(key)}
    assert linked == measured


def test_no_measurement_was_refused():
    assert [run for run in measurements() if run.remark.startswith("refused")] == []


def test_a_ratio_compares_with_the_run_as_it_is():
    place = ("key", "tiny, btree, 1 thread")
    runs = [
        Measured(*place, "", "opt", (0.5, 100), ""),
        Measured(*place, "", "tc", (0.1, 0), ""),
        Measured(*place, "x=1", "opt", (0.25, 300), ""),
        Measured(*place, "x=1", "tc", (0.2, 7), ""),
        Measured(*place, "x=2", "tc", None, "the program ends with exit code 70"),
    ]
    found = [(ratio.measured.design, ratio.throughput, ratio.pmem_bytes) for ratio in ratios(runs)]
    assert found == [("opt", 0.5, 3.0), ("tc", 2.0, None)]


def test_a_range_spans_the_measured_assumptions_of_its_row():
    for row in ds.designs():
        own = [of for of in ratios(measurements())
               if of.measured.design == row["name"] and of.measured.key in row["assumptions"]]  # fmt: skip
        if not own:
            assert range_of(row["name"]) is None
            continue
        multiples = [1.0, *(of.throughput for of in own)]
        found = range_of(row["name"])
        assert found.throughput == (min(multiples), max(multiples))
        for end, key in zip(found.throughput, found.throughput_keys, strict=True):
            assert end == 1.0 if key is None else any((of.throughput, of.measured.key) == (end, key) for of in own)


OF_CONTROLLERS = ("coalescing", "hops", "write-drain", "write-granularity")


def test_an_assumption_about_controllers_stands_at_every_design_that_it_affects():
    """It changes throughput or bytes by more than half a percent somewhere."""
    listed = {row["name"]: row["assumptions"] for row in ds.designs() if not row["control"]}
    changes = [
        (of.measured.design, of.measured.key)
        for of in ratios(measurements())
        if of.measured.key in OF_CONTROLLERS and max(abs(of.throughput - 1), abs((of.pmem_bytes or 1) - 1)) > 0.005
    ]
    assert len(changes) > 100
    missing = {(design, key) for design, key in changes if design in listed and key not in listed[design]}
    assert missing == set()
    measured = {(run.design, run.key) for run in measurements()}
    assert {(design, key) for design in listed for key in OF_CONTROLLERS} <= measured


def test_every_row_with_assumptions_has_a_sensitivity_range():
    rows = [row for row in ds.designs() if row["assumptions"]]
    assert [row["name"] for row in rows if range_of(row["name"]) is None] == []
    opt = next(row for row in ds.designs() if not row["assumptions"])
    assert range_of(opt["name"]) is None


def test_a_knob_of_a_machine_exists():
    """Each `path.to.key` that an entry of a preset names is a path of a preset."""
    presets = [tomllib.loads(ds.machine_toml(machine["name"])) for machine in ds.machines()]

    def has(at, parts):
        return not parts or (isinstance(at, dict) and parts[0] in at and has(at[parts[0]], parts[1:]))

    for key in HEADINGS:
        knob = re.search(r"^- Knob: (.*?)(?=^- )", _entry(key), re.MULTILINE | re.DOTALL)[1]
        for path in re.findall(r"`((?:core|tlb|l1i|l1d|l2|llc|interconnect|dram|pmem)\.[a-z_.0-9]+)`", knob):
            parts = path.rstrip(".").split(".")
            assert any(has(preset, parts) for preset in presets), f"{key}: {path} is in no preset"


def test_a_knob_of_a_design_exists():
    sections = ds.machine_schema()["properties"]["design"]["properties"]
    for key in HEADINGS:
        for design, field in re.findall(r"`design\.([a-z0-9-]+)\.([a-z_0-9]+)`", _entry(key)):
            assert field in sections[design]["properties"], f"{key}: design.{design}.{field} does not exist"
