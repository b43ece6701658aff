"""The presets match the papers: `published_parameters.csv` has a row for each parameter of each machine.

A row lists the keys of its values. Without a conversion it has a reason: the parameter is `built in` and not
configurable, it is `not modelled`, or the preset `differs`. The first two also have keys, those that the parameter
would have: once such a key exists, the row must be filled in. An `argument:NAME.ARGUMENT` is one of a program, of a
member of a suite, or of a runtime; its value is the default.
"""

import csv
import math
import re
from pathlib import Path

import pytest

import durasim as ds
from presets import argument, value, workloads

TABLE = Path(__file__).with_name("published_parameters.csv")
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
NAMES = [f"{row['machine']}: {row['component']}, {row['parameter']}" for row in ROWS]
DESIGNS = ("hercules", "tc")
KIB = 1024

# From a published value, and the frequency in MHz, to the value of the key.
CONVERSIONS = {
    "same": lambda value, _: value,
    "thousand": lambda value, _: value * 1000,
    "kib": lambda value, _: value * KIB,
    "mib": lambda value, _: value * KIB * KIB,
    "gib_to_mib": lambda value, _: value * KIB,
    "ns": lambda value, mhz: math.ceil(value * mhz / 1000),
    "one_less": lambda value, _: value - 1,
    "mib_of_16_mib": lambda value, _: value / 16,
    "kib_of_lines": lambda value, _: value * KIB / 64,
    "kib_of_lines_of_4_cores": lambda value, _: value * KIB / 64 / 4,
    # TxState and three fields of equal size.
    "field_of_an_entry": lambda value, _: (value - 1) / 3,
    "kib_of_64_bit_entries": lambda value, _: value * KIB / 8,
    "bytes_of_bits": lambda value, _: value * 8,
    "entries_of_id_bits": lambda value, _: 2**value,
    # Spacing of the sets that lack a way: the number of sets divided by the number of missing lines.
    "kib_of_32_kib_with_128_sets": lambda value, _: 128 / ((32 - value) * KIB / 64),
    "bytes_of_4_kib_with_16_sets": lambda value, _: 16 / ((4 * KIB - value) / 64),
    "mib_of_8_cores": lambda value, _: 8 * value * KIB * KIB,
    # A clock of 1 GHz takes a nanosecond.
    "ps_of_ghz": lambda value, _: 1000 / value,
    "clocks_of_1_ghz": lambda value, _: value * 1000,
    # A line over this many bits, twice in each clock of a nanosecond.
    "burst_ps_of_bits": lambda value, _: 64 * 8 / value / 2 * 1000,
    "of_12_cores": lambda value, _: value / 12,
    "part_of_32_kib": lambda value, _: 32 * KIB / value,
    "lines_of_gib": lambda value, _: value * KIB**3 / 64,
}
WORDS = ("text", "default")
RANGES = ("settable", "allowed", "option")
REASONS = ("built in: ", "not modelled: ", "differs: ")
# Values of presets and suites for published values in words, ranges, bounds or other units.
CHOSEN = {
    "spht-eadr-2022: PM, model": "pmem-module",
    "spht-eadr-2022: PM, mode": (4, 4096),
    "spht-eadr-2022: PM background, Optane latency (up to about)": 195,
    "spht-eadr-2022: PM background, DDR4 latency": 13750,
    "spht-eadr-2022: synthetic, run time per iteration": 120000,
    "spht-eadr-2022: synthetic, pages": "page",
}
STAMP = {"bayes", "genome", "intruder", "kmeans", "labyrinth", "ssca2", "vacation", "yada"}


def _exists(key):
    """Whether a key exists."""
    kind, _, path = key.partition(":")
    if kind == "workload":
        return path in workloads()
    if kind == "argument":
        return argument(path) is not None
    schema = ds.machine_schema()
    at = schema
    for part in (["design"] if kind == "design" else []) + path.split("."):
        while "$ref" in at or "anyOf" in at:
            at = at["anyOf"][0] if "anyOf" in at else schema["$defs"][at["$ref"].split("/")[-1]]
        if part not in at.get("properties", {}):
            return False
        at = at["properties"][part]
    return True


def _filled(row):
    return row["conversion"] not in ("", *RANGES)


FILLED = {name: row for name, row in zip(NAMES, ROWS, strict=True) if _filled(row)}


@pytest.mark.parametrize("row", FILLED.values(), ids=FILLED)
def test_a_preset_has_the_published_value(row):
    keys, published = row["keys"].split(), re.split("/|, ", row["published"])
    if len(published) == 1:
        published *= len(keys)
    for key, text in zip(keys, published, strict=True):
        found = value(row["machine"], key)
        if row["conversion"] in WORDS:
            assert str(found) == text, key
        else:
            mhz = value(row["machine"], "machine:frequency_mhz")
            assert found == CONVERSIONS[row["conversion"]](float(text), mhz), key


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_row_is_filled_in_or_says_why_not(row):
    assert row["source"]
    keys = row["keys"].split()
    if row["conversion"]:
        assert row["conversion"] in {*CONVERSIONS, *WORDS, *RANGES}
        assert row["conversion"] == "option" or all(_exists(key) for key in keys)
        return
    assert row["reason"].startswith(REASONS)
    if row["reason"].startswith("differs: "):
        assert all(_exists(key) for key in keys)
    else:
        appeared = [key for key in keys if _exists(key)]
        assert appeared == [], "what was not modelled can be set now: fill the row in"


@pytest.mark.parametrize("key", ["workload:spht-tpcc", "argument:spht-tpcc.warehouses", "argument:spht.attempts"])
def test_what_suites_and_runtimes_have_ends_a_row_that_says_not_modelled(key):
    """Keys that no program defines itself are also detected."""
    row = {
        "source": "section 1",
        "keys": key,
        "conversion": "",
        "reason": "not modelled: there is no such workload yet",
    }
    with pytest.raises(AssertionError, match="fill the row in"):
        test_a_row_is_filled_in_or_says_why_not(row)


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_not_published_as_a_value_has_the_one_chosen_here(name):
    row = ROWS[NAMES.index(name)]
    values = CHOSEN[name] if isinstance(CHOSEN[name], tuple) else (CHOSEN[name],)
    assert tuple(dict.fromkeys(value(row["machine"], key) for key in row["keys"].split())) == values


def test_the_suite_stamp_has_all_programs_but_bayes():
    keys = ROWS[NAMES.index("spht-eadr-2022: STAMP, apps")]["keys"]
    members = {member.info.name: member.info for member in ds.suite_members() if member.suite == "stamp"}
    assert {members[key.removeprefix("workload:")].program for key in keys.split()} == STAMP - {"bayes"}


def test_what_an_experiment_gives_is_allowed():
    for row in ROWS:
        if row["conversion"] == "allowed":
            known = argument(row["keys"].removeprefix("argument:"))
            assert known.maximum is None or known.maximum >= float(row["published"])


def test_no_parameter_stands_twice():
    assert len(set(NAMES)) == len(NAMES)
    machines = {
        "hercules-tecs23", "hercules-tecs23-eighth", "lad-micro19", "lad-micro19-dual", "pinspect-micro20",
        "spht-eadr-2022", "tc-dac17",
    }  # fmt: skip
    assert {row["machine"] for row in ROWS} == machines
