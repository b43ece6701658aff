"""Each cited assumption is in assumptions.toml, in DEVIATIONS.md and, with its full text, on its page."""

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import durasim as ds
from durasim.runs.assumptions import (
    MEASURED,
    NO_EFFECT,
    NOT_MEASURED,
    assumptions,
    assumptions_of,
    changes,
    effect_text,
    headline,
    measured_status,
    pmem_writes,
    relative_throughput,
    written_from_nothing,
)
from durasim.runs.sensitivity import SECOND_SETTINGS, Measured, measurements, range_of, ratios

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "DEVIATIONS.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### (\S+)$", PAGE, re.MULTILINE)
FIELDS = ("Paper", "Assumed", "Parameter", "Alternatives", "Effect", "Status")
# Maximum size of a page for fifteen minutes of reading.
SIZE_MAX = 40_000
LINE_MAX = 130

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


@cache
def _entries(page):
    """The entries of a page below the headings of their keys."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^### (\S+)$(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len({key for key, _ in found}) == len(found), page
    return dict(found)


def test_every_citation_is_an_assumption():
    assert {key: where for key, where in _cited().items() if key not in assumptions()} == {}


def test_every_assumption_is_cited():
    assert [key for key in assumptions() if key not in _cited()] == []


def test_the_page_has_each_assumption_once_and_is_short():
    assert sorted(HEADINGS) == sorted(assumptions())
    assert len(PAGE.encode()) <= SIZE_MAX


def test_the_page_has_the_largest_effects_first():
    measured = [assumptions()[key] for key in HEADINGS if assumptions()[key].status == MEASURED]
    assert HEADINGS[: len(measured)] == [assumption.key for assumption in measured]
    found = [round(headline(assumption), 2) for assumption in measured]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("key", assumptions())
def test_an_assumption_says_everything(key):
    assumption = assumptions()[key]
    assert assumption.paper
    assert assumption.section
    assert assumption.range
    assert 0 < len(assumption.assumed) <= LINE_MAX
    assert not assumption.assumed.endswith(".")
    assert assumption.status in (MEASURED, NO_EFFECT, NOT_MEASURED)
    entry = _entries(assumption.page)[key]
    assert [field for field in FIELDS if f"- {field}: " not in entry] == []
    assert not re.search(r"^\|", entry, re.MULTILINE)
    assert f"]({assumption.page}#{key})" in PAGE


def test_designs_are_those_whose_rows_name_the_assumption():
    rows = {row["name"]: row["assumptions"] for row in ds.designs()}
    named = {key: tuple(name for name, keys in rows.items() if key in keys) for key in assumptions()}
    assert {key: assumption.designs for key, assumption in assumptions().items()} == named
    for name, keys in rows.items():
        assert sorted(assumption.key for assumption in assumptions_of(name)) == sorted(keys)


def test_a_status_follows_from_the_measurements():
    for key, assumption in assumptions().items():
        followed = measured_status(key)
        if followed is not None:
            assert (assumption.status, assumption.effect) == (followed, ""), key
            assert f"sensitivity.md#{key})" in _entries(assumption.page)[key]
        else:
            assert (assumption.status == MEASURED) == bool(assumption.effect), key
    assert {run.key for run in measurements()} <= set(assumptions())


def test_effects_are_relative_to_a_design_without_durability():
    least, most = relative_throughput("pmem-banks")
    assert least.design != "opt"
    assert least.value < 1 < most.value
    assert headline(assumptions()["pmem-banks"]) == pytest.approx(max(1 / least.value, most.value))
    assert relative_throughput("tc-abort") is None
    assert headline(assumptions()["tc-abort"]) == 1
    assert effect_text(assumptions()["tc-abort"]) == NOT_MEASURED


def test_bytes_beside_next_to_nothing_are_no_ratio():
    """Hercules writes one line under the assumption, and one per transaction with TxLen at the controller."""
    least, most = pmem_writes("hercules-txlen-store")
    assert most.value < 100 > 1 / least.value
    assert written_from_nothing("hercules-txlen-store") > 10_000
    assert "in runs that wrote almost nothing" in effect_text(assumptions()["hercules-txlen-store"])


def test_no_measurement_was_refused():
    assert [run for run in measurements() if run.remark.startswith("refused")] == []


def test_a_ratio_compares_with_the_run_as_it_is():
    place = ("key", "tiny, btree, 1 thread")
    runs = [
        Measured(*place, "", "opt", (0.5, 10_000), ""),
        Measured(*place, "", "tc", (0.1, 64), ""),
        Measured(*place, "x=1", "opt", (0.25, 30_000), ""),
        Measured(*place, "x=1", "tc", (0.2, 70_000), ""),
        Measured(*place, "x=2", "tc", None, "the program ends with exit code 70"),
    ]
    found = [(ratio.measured.design, ratio.throughput, ratio.pmem_bytes) for ratio in ratios(runs)]
    assert found == [("opt", 0.5, 3.0), ("tc", 2.0, None)]


def test_an_alternative_with_a_second_setting_compares_with_the_run_that_has_it():
    key, place = "kiln-overflow", "tiny, btree, 1 thread"
    second = SECOND_SETTINGS[key]
    runs = [
        Measured("kiln-fifo", place, "", "kiln", (1.0, 0), ""),
        Measured("kiln-fifo", place, second, "kiln", (0.2, 0), ""),
        Measured(key, place, "", "kiln", (1.0, 0), ""),
        Measured(key, place, f"{second} x=50", "kiln", (0.3, 0), ""),
        Measured(key, place, "y=1", "kiln", (0.9, 0), ""),
    ]
    found = [(ratio.measured.setting, ratio.throughput) for ratio in ratios(runs)]
    assert found == [(second, 0.2), (f"{second} x=50", 1.5), ("y=1", 0.9)]


@pytest.mark.parametrize("key", SECOND_SETTINGS)
def test_a_second_setting_was_measured_with_the_same_build(key):
    """Its run, perhaps of another key, starts from the same unchanged numbers."""
    unchanged = {(run.key, run.place, run.design): run.numbers for run in measurements() if not run.setting}
    alone = [run for run in measurements() if run.setting == SECOND_SETTINGS[key]]
    assert alone
    for run in alone:
        assert unchanged[run.key, run.place, run.design] == unchanged[key, run.place, run.design]


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


# What prose beside a measured effect must not repeat, as it is generated beside it, and how large it is in words.
EFFECT_IN_PROSE = re.compile(
    r"\d\s*%|\d(?:\.\d+)?x\b|\b(?:percent|decisive|decides|hardly|nothing|largest|most of|times slower|times as)\b"
)


@pytest.mark.parametrize("key", [key for key in assumptions() if changes(key)])
def test_prose_beside_a_measured_effect_does_not_state_it(key):
    """Its effect is generated from sensitivity.csv; the status says why it is settled or open."""
    status = _entries(assumptions()[key].page)[key].split("- Status: ")[1]
    assert not EFFECT_IN_PROSE.search(" ".join(status.split())), status


def test_an_effect_in_prose_is_found():
    for text in ("open; one percent here", "open, and decisive for TC", "loses 30 % there", "open; nothing here"):
        assert EFFECT_IN_PROSE.search(text)
    assert not EFFECT_IN_PROSE.search("open; the two papers disagree (sections 2.2 and 4.1)")


@pytest.mark.parametrize("key", assumptions())
def test_a_parameter_exists(key):
    """Each path is that of a preset or a parameter of a design; arguments of programs have no path."""
    presets = [tomllib.loads(ds.machine_toml(machine["name"])) for machine in ds.machines()]
    sections = ds.machine_schema()["properties"]["design"]["properties"]

    def has(at, parts):
        return not parts or parts == ["*"] or (isinstance(at, dict) and parts[0] in at and has(at[parts[0]], parts[1:]))

    for path in assumptions()[key].parameters:
        design = re.fullmatch(r"design\.([a-z0-9-]+)\.([a-z_0-9]+)", path)
        if design:
            assert design[2] in sections[design[1]]["properties"], path
        elif not path.startswith("--arg "):
            parts = path.split(".")
            assert any(has(preset, parts) for preset in presets) or _is_in_schema(parts), path


def _is_in_schema(parts):
    schema = ds.machine_schema()
    return f'"{parts[-1]}"' in str(schema).replace("'", '"')
