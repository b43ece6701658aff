"""Keys of results: a change of anything that a simulation reads misses the store."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

import durasim as ds
from durasim import _core
from durasim.crashes.crash_request import crash_request, options_of
from durasim.runs.scenario import Scenario
from durasim.store import keys
from durasim.store.keys import Keys, writes


@pytest.fixture
def request_of_files(tmp_path):
    """A request that names every kind of file that a run can read."""
    names = {"elf": "prog", "pool": "pool.bin", "from": "s.snapshot", "machine": "m.toml"}
    for name in names.values():
        (tmp_path / name).write_bytes(b"some bytes of " + name.encode())
    folder = tmp_path / "root" / "data"
    folder.mkdir(parents=True)
    (folder / "input").write_bytes(b"input")
    (folder / "link").symlink_to("input")
    scenario = Scenario(workload="array-swap", machine="tiny", ops=4)
    paths = {field: str(tmp_path / name) for field, name in names.items()}
    return scenario.request() | paths | {"root": str(tmp_path / "root"), "env": ["A=b"], "args": ["x"]}


def key(request, kind="run"):
    return Keys().of(kind, request)


@pytest.mark.parametrize("field", ["elf", "pool", "from", "machine"])
def test_one_byte_of_a_file_changes_the_key(request_of_files, field):
    before = key(request_of_files)
    path = request_of_files[field]
    with Path(path).open("r+b") as file:
        file.write(b"S")
    assert key(request_of_files) != before
    with Path(path).open("r+b") as file:
        file.write(b"s")
    assert key(request_of_files) == before


@pytest.mark.parametrize(
    ("change", "is_noticed"),
    [
        (lambda root: (root / "data" / "input").write_bytes(b"inpuT"), True),
        (lambda root: (root / "data" / "input").chmod(0o755), True),
        (lambda root: (root / "data" / "input").rename(root / "data" / "other"), True),
        (lambda root: (root / "data" / "empty").mkdir(), True),
        (lambda root: ((root / "data" / "link").unlink(), (root / "data" / "link").symlink_to("inpuT")), True),
        # The guest sees no times of the host.
        (lambda root: os.utime(root / "data" / "input", (1, 1)), False),
    ],
)
def test_files_below_the_root_are_part_of_the_key(request_of_files, tmp_path, change, is_noticed):
    before = key(request_of_files)
    change(tmp_path / "root")
    assert (key(request_of_files) != before) == is_noticed


def test_every_field_of_a_request_is_part_of_the_key_except_the_number_of_threads_of_the_host():
    scenario = Scenario(design="tc", workload="array-swap", machine="tiny", ops=4)
    request = crash_request(scenario, options_of({"workers": 1}))
    schema = json.loads(_core.run_schemas())["crash"]["properties"]
    assert request.keys() <= schema.keys()
    before = key(request, "crash")
    files = {"elf", "pool", "from", "root", "machine"}
    for name in sorted(schema.keys() - files):
        changed = request | {name: "another value"}
        assert (key(changed, "crash") == before) == (name == "workers"), name
    assert key(request, "run") != before


def test_a_file_at_another_place_is_the_same_input_except_for_the_name_that_the_program_sees(
    request_of_files, tmp_path
):
    before = key(request_of_files)
    for field in ("elf", "pool", "from", "machine"):
        moved = tmp_path / f"moved-{field}"
        shutil.copy(request_of_files[field], moved)
        assert key(request_of_files | {field: str(moved)}) == before
    assert key(request_of_files | {"elf_name": "./prog"}) != before
    assert key(request_of_files | {"exe_link": "/prog"}) != before


def test_the_build_and_standard_input_are_part_of_the_key(request_of_files, monkeypatch):
    before = key(request_of_files)
    monkeypatch.setattr(keys, "STANDARD_INPUT", b"\n")
    assert key(request_of_files) != before
    monkeypatch.undo()
    monkeypatch.setattr(keys, "build", lambda: "another")
    assert key(request_of_files) != before


def test_fields_that_name_files_are_known_to_the_keys():
    """A new option that names a file has to be read for the key, or to forbid reuse."""
    schema = json.loads(_core.run_schemas())["request"]["properties"]
    files = {name for name, field in schema.items() if field.get("x-metavar") in ("FILE", "DIR")}
    assert files == {*keys._READ, *keys._WRITTEN} - {"elf"}


@pytest.mark.parametrize(
    ("files", "written"),
    [
        ({"pool": "p"}, "pool"),
        ({"snapshot": "s", "snapshot_at": 0}, "snapshot"),
        ({"root": "/data", "root_write": True}, "root_write"),
        ({"root": "/data", "root_write": False}, None),
        ({"from": "s"}, None),
        ({}, None),
    ],
)
def test_runs_that_write_are_known(files, written):
    assert writes(Scenario(workload="array-swap", machine="tiny").request() | files) == written


def test_one_set_of_keys_reads_a_changed_file_again(tmp_path, request_of_files):
    several = Keys()
    before = several.of("run", request_of_files)
    # A file system stamps files with the time of a clock that advances every few milliseconds.
    time.sleep(0.02)
    (tmp_path / "prog").write_bytes(b"Some bytes of prog")
    assert several.of("run", request_of_files) != before


def test_a_folder_that_cannot_be_read_is_named(request_of_files, tmp_path):
    (tmp_path / "pool.bin").unlink()
    (tmp_path / "pool.bin").symlink_to("pool.bin")
    with pytest.raises(ds.HostIoError, match=r"pool\.bin"):
        key(request_of_files)
