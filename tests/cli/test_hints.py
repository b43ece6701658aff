"""Hints on standard error about runs that may not measure what the user intends."""

import json
import re
import shutil
import subprocess
import sys

import pytest

import durasim as ds
import samples
from durasim.cli import hints
from durasim.programs import toolchain


def of(**changes):
    nothing = {"pmem_write_bytes": dict.fromkeys(samples.RUN["pmem_write_bytes"], 0)}
    llc = {"configuration": {"name": "tiny", "llc": {"size_bytes": 16 << 20}}}
    return ds.RunResult.from_dict(samples.run(**{**nothing, **llc, **changes}))


def test_data_that_fit_the_caches_are_noticed(program):
    run = ["run", "--workload", "array-swap", "--ops", "50", "--arg", "populate=50"]
    result = program(*run)
    assert result.returncode == 0
    (line,) = result.stderr.splitlines()
    assert re.search(
        r"nothing was written to pmem by opt under array-swap: [\d.]+ KB of changed data fit in the LLC of 16\.8 MB",
        line,
    )
    assert int(line.rpartition("--arg populate=")[2]) > 50
    assert program(*run, "--quiet").stderr == ""
    # A log is written even if the data fit.
    assert program(*run, "--design", "swl-flush").stderr == ""


def test_one_sentence_for_all_designs_of_a_workload(program):
    result = program(
        "compare",
        "--designs",
        "opt,hercules,swl-flush",
        "--workloads",
        "array-swap",
        "--ops",
        "50",
        "--arg",
        "populate=50",
    )
    (line,) = result.stderr.splitlines()
    assert "by opt, hercules under array-swap" in line


def test_the_advice_fits_the_workload(capsys):
    hints.warn_if_data_fits_in_cache([of()])
    assert "try --arg populate=" in capsys.readouterr().err
    own = samples.RUN["provenance"]
    hints.warn_if_data_fits_in_cache([of(provenance=own | {"workload_args": {"rows": 3}})])
    assert capsys.readouterr().err.endswith("fit in the LLC of 16.8 MB\n")
    started = {"llc": {"size_bytes": 16 << 20}, "start": {"kind": "fast_forward"}}
    hints.warn_if_data_fits_in_cache([of(configuration=started)])
    assert re.search(r"; try --ops \d+ --arg populate=\d+\n$", capsys.readouterr().err)


@pytest.mark.parametrize("fast_forward", [None, "roi"])
@pytest.mark.parametrize("workload", ["array-swap", "btree"])
def test_the_advice_works(program, fast_forward, workload):
    """A cache that holds all data of a short run; following the hint causes writes."""
    options = ["--machine", "tiny", "--set", "llc.size_bytes=16KiB", "--domain", "eadr", "--json", "-"]
    options += [] if fast_forward is None else ["--fast-forward", fast_forward]
    first = program("run", "--workload", workload, *options, "--ops", "4", "--arg", "populate=4")
    assert json.loads(first.stdout)["pmem_write_bytes"]["total"] == 0
    *_, said = first.stderr.splitlines()
    advice = said.rpartition("; try ")[2].split()
    assert advice[0] == ("--arg" if fast_forward is None else "--ops"), said
    more = advice if fast_forward else ["--ops", "4", *advice]
    second = program("run", "--workload", workload, *options, *more)
    assert json.loads(second.stdout)["pmem_write_bytes"]["total"] > 0
    assert "nothing was written" not in second.stderr


def test_a_design_that_wrote_nothing_is_named_beside_others_that_did(capsys):
    wrote = {f"pmem_write_bytes__{cause}": 64 for cause in ("total", "log")}
    hints.warn_if_data_fits_in_cache([of(), of(design="swl-flush", **wrote)])
    assert "by opt under btree" in capsys.readouterr().err


@pytest.mark.parametrize("changes", [{"pmem_write_bytes__total": 64}, {"pmem_residual_dirty_bytes": 0}])
def test_nothing_is_said_where_something_was_written_or_nothing_changed(capsys, changes):
    hints.warn_if_data_fits_in_cache([of(**changes)])
    assert capsys.readouterr().err == ""


@pytest.fixture
def without_a_table(tmp_path):
    """Starts the program on a copy of the guest sources in which a workload lacks its table of arguments."""
    guest = tmp_path / "guest"
    shutil.copytree(toolchain.guest_folder(), guest)
    (guest / "workloads" / "btree.toml").unlink()
    script = tmp_path / "start.py"
    script.write_text(f"""
import sys
from pathlib import Path
from durasim import cli
from durasim.programs import workload_tables
workload_tables.guest_folder = lambda: Path({str(guest)!r})
from durasim.programs import toolchain
toolchain.build_folder = lambda: Path({str(toolchain.build_folder())!r})
cli.app(sys.argv[1:], prog_name="durasim")
""")

    def start(*words):
        command = [sys.executable, str(script), *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)

    return start


def test_a_missing_table_of_one_workload_does_not_break_the_others(without_a_table):
    listed = without_a_table("workloads", "--json", "-")
    names = {row["name"] for row in json.loads(listed.stdout)}
    assert "array-swap" in names
    assert not {"btree", "hercules-beyond-btree"} & names
    assert "warning: skipped" in listed.stderr
    assert "btree.toml" in listed.stderr
    small = ("--machine", "tiny", "--ops", "5", "--quiet")
    other = without_a_table("run", "--workload", "array-swap", *small, "--arg", "populate=5")
    assert other.returncode == 0, other.stderr
    broken = without_a_table("run", "--workload", "btree", *small)
    assert broken.returncode in (2, 4)
    assert "btree.toml" in broken.stderr
    assert broken.stderr.count("\n") == 1
