"""Sentences on standard error about runs that measure something else than their user may think."""

import json
import re
import shutil
import subprocess
import sys

import pytest

import durasim as ds
import samples
from durasim import hints, toolchain


def of(**changes):
    nothing = {"pmem_write_bytes": dict.fromkeys(samples.RUN["pmem_write_bytes"], 0)}
    llc = {"configuration": {"name": "tiny", "llc": {"size_bytes": 16 << 20}}}
    return ds.RunResult.from_dict(samples.run(**{**nothing, **llc, **changes}))


def test_data_that_fit_the_caches_are_noticed(program):
    run = ["run", "--workload", "array-swap", "--ops", "50", "--arg", "populate=50"]
    result = program(*run)
    assert result.returncode == 0
    (line,) = result.stderr.splitlines()
    assert re.search(r"nothing was written to pmem: the [\d.]+ KB of changed data fit the LLC of 16\.8 MB", line)
    assert int(line.rpartition("--arg populate=")[2]) > 50
    assert program(*run, "--quiet").stderr == ""
    # A log is written whether the data fit or not.
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
    hints.tell_what_stayed_in_caches([of()])
    assert "try --arg populate=" in capsys.readouterr().err
    own = samples.RUN["provenance"]
    hints.tell_what_stayed_in_caches([of(provenance=own | {"workload_args": {"rows": 3}})])
    assert capsys.readouterr().err.endswith("fit the LLC of 16.8 MB\n")
    started = {"llc": {"size_bytes": 16 << 20}, "start": {"kind": "fast_forward"}}
    hints.tell_what_stayed_in_caches([of(configuration=started)])
    assert "larger --arg populate or more --ops" in capsys.readouterr().err


@pytest.mark.parametrize("changes", [{"pmem_write_bytes__total": 64}, {"pmem_residual_dirty_bytes": 0}])
def test_nothing_is_said_where_something_was_written_or_nothing_changed(capsys, changes):
    hints.tell_what_stayed_in_caches([of(**changes)])
    assert capsys.readouterr().err == ""


@pytest.fixture
def without_a_table(tmp_path):
    """Start the program on a copy of the guest sources in which a workload has lost its table of arguments."""
    guest = tmp_path / "guest"
    shutil.copytree(toolchain.guest_folder(), guest)
    (guest / "workloads" / "btree.toml").unlink()
    script = tmp_path / "start.py"
    script.write_text(f"""
import sys
from pathlib import Path
from durasim import cli, toolchain
toolchain.guest_folder = lambda: Path({str(guest)!r})
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
    assert "left out" in listed.stderr
    assert "btree.toml" in listed.stderr
    small = ("--machine", "tiny", "--ops", "5", "--quiet")
    other = without_a_table("run", "--workload", "array-swap", *small, "--arg", "populate=5")
    assert other.returncode == 0, other.stderr
    broken = without_a_table("run", "--workload", "btree", *small)
    assert broken.returncode in (2, 4)
    assert "btree.toml" in broken.stderr
    assert broken.stderr.count("\n") == 1
