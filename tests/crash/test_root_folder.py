"""Crashes of programs that read files of a folder of the host."""

import shlex
from pathlib import Path

import pytest

import command_line
import compiled
import durasim as ds


@pytest.fixture(scope="module")
def elf():
    return compiled.program(Path(__file__).with_name("rooted.c"))


def folder(path, count, allowed=9):
    path.mkdir()
    (path / "count").write_text(f"{count}\n")
    (path / "allowed").write_text(f"{allowed} {count}\n")
    return path


def crash(elf, root):
    return ds.crash(design="opt", machine="tiny", elf=elf, root=root, args=["run"], check_args=["check"], points=20)


def test_a_crashed_program_has_its_files_and_changes_none(elf, tmp_path):
    few, many = (crash(elf, folder(tmp_path / str(count), count)) for count in (2, 6))
    assert few.violations == many.violations == 0
    assert 0 < few.points < many.points
    assert sorted(path.name for path in (tmp_path / "6").iterdir()) == ["allowed", "count"], "the log stays in memory"


def test_without_the_folder_the_program_fails_before_any_crash(elf):
    with pytest.raises(ds.DurasimError, match="it exits with 3"):
        crash(elf, None)


def test_the_command_and_replays_take_the_folder(elf, tmp_path):
    root = folder(tmp_path / "root", 3, allowed=1)
    words = ["crash", "--design", "opt", "--machine", "tiny", "--elf", elf, "--root", root, "--check", "check"]
    done = command_line.run(*words, "--", "run")
    assert done.returncode == 1, "a count of 2 is above 1"
    replay = shlex.split(next(line for line in done.stdout.splitlines() if "--replay" in line))
    assert replay[replay.index("--root") + 1] == str(root)
    assert command_line.run(*replay[1:]).returncode == 1
    (root / "allowed").write_text("3 3\n")
    assert command_line.run(*words, "--", "run").returncode == 0
