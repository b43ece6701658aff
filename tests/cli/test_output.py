"""Files are written atomically."""

import errno
import json
import os
import resource
import stat
import sys

import pytest

from durasim import output
from durasim.errors import HostIoError

DOCUMENT = {"name": "value", "list": list(range(1000))}


def test_a_document_is_written_whole(tmp_path):
    path = tmp_path / "result.json"
    path.write_text("old")
    output.write_json(str(path), DOCUMENT)
    assert json.loads(path.read_text()) == DOCUMENT
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


def test_a_new_file_has_the_usual_permissions(tmp_path):
    usual, ours = tmp_path / "usual", tmp_path / "ours"
    usual.touch()
    output.write_json(str(ours), DOCUMENT)
    assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.touch()
    link.symlink_to(target)
    output.write_json(str(link), DOCUMENT)
    assert link.is_symlink()
    assert json.loads(target.read_text()) == DOCUMENT


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    path.write_text("old")

    def full(_handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HostIoError, match="No space left") as failure:
        output.write_json(str(path), DOCUMENT)
    assert failure.value.exit_code == 4
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


def test_a_limit_on_the_size_of_files_leaves_nothing(tmp_path):
    path = tmp_path / "result.json"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(HostIoError):
            output.write_json(str(path), DOCUMENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_not_replaced():
    with pytest.raises(HostIoError, match="/dev/full"):
        output.write_json("/dev/full", DOCUMENT)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)  # noqa: PTH116 - a device, not a file


@pytest.mark.parametrize("path", ["missing/result.json", "."])
def test_an_impossible_place_is_found_before_the_run(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HostIoError):
        output.check_writable(path)
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_is_found_before_the_run(tmp_path):
    if os.geteuid() == 0:
        # Root may write to every ordinary folder, but no user can create a file in /proc.
        folder = "/proc"
    else:
        tmp_path.chmod(0o500)
        folder = str(tmp_path)
    with pytest.raises(HostIoError):
        output.check_writable(f"{folder}/result.json")


def test_the_check_leaves_no_file(tmp_path):
    output.check_writable(str(tmp_path / "result.json"))
    assert list(tmp_path.iterdir()) == []


def test_what_the_guest_prints_passes_byte_for_byte(capfdbinary):
    output.pass_through("stdout", b"\xff\x00out")
    output.pass_through("stderr", b"err")
    captured = capfdbinary.readouterr()
    assert captured.out == b"\xff\x00out"
    assert captured.err == b"err"
    sys.stdout.flush()
