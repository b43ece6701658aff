"""Tests of a group run in one worker, one after the other: they share a folder or a port."""

import subprocess
import sys

from tools import test_stages

TESTS = """
import pytest

pytestmark = pytest.mark.xdist_group("one folder")


@pytest.mark.parametrize("number", range(6))
def test_number(number, worker_id):
    with open("workers", "a") as file:
        file.write(f"{worker_id}\\n")
"""


def test_a_group_has_one_worker(tmp_path):
    (tmp_path / "test_group.py").write_text(TESTS)
    words = ["-m", "pytest", "--numprocesses", "2", *test_stages.IN_ORDER, "-p", "no:cacheprovider"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    workers = (tmp_path / "workers").read_text().split()
    assert len(workers) == 6
    assert len(set(workers)) == 1
