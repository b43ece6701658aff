"""`--persistence-report`: exact numbers of a program whose operations, fences and stores are known."""

from pathlib import Path

import pytest

import command_line
import compiled
import durasim as ds

SOURCE = Path(__file__).with_name("persistence.c")
ROUNDS = 10


@pytest.fixture(scope="module")
def elf():
    return compiled.program(SOURCE)


def marked(mark):
    (line,) = [number for number, text in enumerate(SOURCE.read_text().splitlines(), 1) if f"/* {mark} */" in text]
    return line


@pytest.fixture(scope="module")
def report(elf):
    return ds.run(design="opt", machine="tiny", elf=elf, persistence_report=True).persistence


def uses(report, mark):
    """The numbers of the line with a mark that are not 0."""
    found = [line for line in report["lines"] if line["line"] == marked(mark)]
    numbers = ("operations", "fences", "uncleaned_bytes")
    (line,) = found or [{}]
    names = [name for name in line if name.startswith(numbers) and "cycles" not in name]
    return {name: line[name] for name in names if line[name]}


def test_each_line_has_its_numbers(report):
    assert uses(report, "right") == {"operations": ROUNDS}
    assert uses(report, "waits") == {"fences": ROUNDS}
    again = {"operations": ROUNDS, "operations_of_clean_lines": ROUNDS, "operations_without_store": ROUNDS}
    assert uses(report, "again") == again
    assert uses(report, "volatile")["operations_of_volatile_lines"] == ROUNDS
    assert uses(report, "never stored") == again
    assert uses(report, "in vain") == {"fences": ROUNDS}
    assert uses(report, "idle") == {"fences": ROUNDS, "fences_without_operation": ROUNDS}
    assert uses(report, "replaced") == {}
    assert uses(report, "never cleaned") == {"uncleaned_bytes": 8}
    assert uses(report, "four bytes") == {"uncleaned_bytes": 4}


def test_the_waits_of_fences_are_shared_by_the_operations_before_them(report):
    of = {line["line"]: line for line in report["lines"]}
    assert of[marked("waits")]["fence_wait_cycles"] == of[marked("right")]["operation_wait_cycles"] > 0
    assert of[marked("right")]["wasted_wait_cycles"] == 0
    in_vain = of[marked("volatile")], of[marked("never stored")]
    wasted = sum(line["wasted_wait_cycles"] for line in in_vain)
    assert wasted == of[marked("in vain")]["fence_wait_cycles"] > 0
    total = report["total"]
    assert total["operation_wait_cycles"] == sum(line["operation_wait_cycles"] for line in report["lines"])


def test_totals_are_those_of_the_run(elf, report):
    plain = ds.run(design="opt", machine="tiny", elf=elf)
    assert plain.persistence is None
    counted = plain.stats["cbo"]
    assert report["total"]["operations"] == counted["cleans"].value == 5 * ROUNDS
    assert report["cleaned_bytes"] == 4 * ROUNDS * 64
    stored = 2 * ROUNDS * 8 + 8 + 8 + 4
    assert report["total"]["stored_bytes"] == stored
    assert report["cleaned_per_stored"] == pytest.approx(4 * ROUNDS * 64 / stored)
    again = ds.run(design="opt", machine="tiny", elf=elf, persistence_report=True)
    assert again.digest == plain.digest, "the report changes nothing"


def test_the_document_and_the_table(elf, conforms):
    words = ["run", "--design", "opt", "--machine", "tiny", "--elf", elf, "--persistence-report"]
    document = ds.run(design="opt", machine="tiny", elf=elf, persistence_report=True).to_dict()
    conforms("run", document)
    text = command_line.run(*words).stdout
    row = next(line for line in text.splitlines() if f"persistence.c:{marked('again')} in main" in line)
    assert [cell.strip() for cell in row.strip("│┃ ").split("│")][1:3] == ["10", "10"]
    assert "2,560 bytes cleaned for 180 stored: 14.22" in text


def test_a_functional_run_has_no_report(elf):
    done = command_line.run("run", "--elf", elf, "--design", "opt", "--functional", "--persistence-report")
    assert done.returncode == 2
    assert "persistence_report" in done.stderr and len(done.stderr.splitlines()) == 1
