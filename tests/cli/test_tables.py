"""Tables are readable at 80 columns: every cell is complete, in one of the blocks."""

import json
import os
import re

import pytest
from rich.console import Console

import durasim as ds
import samples
from durasim.cli.tables import Column, FoldedTable

WIDTH = 80


def lines_of(table, width):
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return capture.get().splitlines()


def sample():
    headers = ("throughput\nops/us", "instructions", "cycles", "pmem bytes\nwritten")
    columns = [Column("design"), *(Column(header, right=True) for header in headers), Column("why", wraps=True)]
    table = FoldedTable("numbers", columns, caption="the end")
    for design in ("opt", "hercules [1]"):
        table.add_row(design, "0.1234", "123,456,789", "987,654,321", "11,222,333", "a sentence of some words " * 3)
        table.add_section()
    return table


def test_a_wide_terminal_has_one_block():
    lines = lines_of(sample(), 200)
    assert sum("design" in line for line in lines) == 1
    assert all(len(line) <= 200 for line in lines)


@pytest.mark.parametrize("width", [80, 50, 34])
def test_a_narrow_terminal_has_several_with_all_cells_whole(width):
    lines = lines_of(sample(), width)
    text = "\n".join(lines)
    assert sum("design" in line for line in lines) > 1
    assert all(len(line) <= width for line in lines)
    for cell in ("0.1234", "123,456,789", "987,654,321", "11,222,333"):
        assert text.count(cell) == 2
    assert text.count("hercules [1]") == sum("design" in line for line in lines)
    assert text.count("numbers") == text.count("the end") == 1
    words = re.findall(r"\b(?:a|sentence|of|some|words)\b", text)
    assert words.count("sentence") == 6


@pytest.fixture
def two_runs(tmp_path):
    paths = tmp_path / "a.json", tmp_path / "b.json"
    for path, cycles in zip(paths, (2000, 123_456_789), strict=True):
        path.write_text(json.dumps(samples.run(roi__cycles=cycles, design="opt" if cycles == 2000 else "hercules")))
    return paths


@pytest.mark.parametrize(
    ("words", "cells"),
    [
        (["designs"], [row["name"] for row in ds.designs()]),
        (["designs", "hercules"], ["extension_search_first_cycles", "0 to 1000000", "hercules-conflict"]),
        (["machines"], ["hercules-tecs23-modern-eighth"]),
        (["workloads", "btree", "hercules-huge-10k"], ["hercules-huge-10k", "populate"]),
        (
            ["compare", "--designs", "opt,swl-flush", "--workloads", "array-swap", "--wide"],
            ["swl-flush", "p99.9", "metadata"],
        ),
        (
            ["explain", "--designs", "hercules,tc,swl-flush", "--workloads", "array-swap", "--no-store"],
            ["swl-flush", "sum", "base", "metadata"],
        ),
        (["run", "--workload", "array-swap"], ["instructions per cycle", "transactions committed"]),
        (["mutation", "--design", "tc", "--mutant", "freed-at-issue"], ["tc/freed-at-issue", "bytes+history"]),
        (["diff"], ["123,456,789", "roi.cycles"]),
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else "",
)
def test_every_command_is_readable_at_80_columns(program, two_runs, words, cells):
    small = (
        ["--machine", "tiny", "--ops", "20", "--arg", "populate=20"]
        if words[0] in ("compare", "explain", "run")
        else []
    )
    files = two_runs if words == ["diff"] else ()
    result = program(*words, *small, *files, env={**os.environ, "COLUMNS": str(WIDTH)})
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= WIDTH
    assert "…" not in result.stdout
    for cell in cells:
        assert cell in result.stdout
    wide = program(*words, *small, *files, env={**os.environ, "COLUMNS": "150"})
    assert max(map(len, wide.stdout.splitlines())) > WIDTH or words[0] in ("run", "mutation", "diff", "machines")


@pytest.mark.parametrize("design", [row["name"] for row in ds.designs()])
def test_every_parameter_has_a_default_a_range_and_a_source(design):
    described = ds.describe_design(design)
    assert described["name"] == design
    for parameter in described["parameters"]:
        assert parameter["range"], parameter
        assert parameter["source"] not in ("", "not stated"), parameter
        assert "likewise" not in parameter["source"]
        assert parameter["description"].endswith(".")
        assert "DEVIATIONS" not in parameter["description"] + parameter["source"]


def test_ranges_are_those_that_are_refused():
    ewpq = next(p for p in ds.describe_design("hercules")["parameters"] if p["name"] == "ewpq_entries")
    assert (ewpq["default"], ewpq["range"], ewpq["source"]) == (512, "1 to 1048576", "section 4.2: 512")
    for value in (0, 1048577):
        with pytest.raises(ds.ConfigError, match=r"ewpq_entries.* is not between 1 and 1048576"):
            ds.run(
                design="hercules", workload="btree", machine="tiny", ops=1, set={"design.hercules.ewpq_entries": value}
            )
