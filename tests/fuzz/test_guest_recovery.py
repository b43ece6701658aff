"""The fuzz body that runs a guest's own recovery: the program is built here, as Rust tests have no compiler for it."""

import os
import subprocess
from pathlib import Path

import pytest

from durasim import toolchain

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("workload", ["array-swap", "btree"])
def test_mutated_pools_are_recovered_or_refused(workload):
    program = toolchain.build(workload, "undo-flush")
    # The whole workspace, as `make test` has built it: a package by itself may want other features of its libraries.
    command = ["cargo", "test", "--quiet", "--locked", "--workspace", "--test", "targets"]
    done = subprocess.run(
        [*command, "--", "--ignored", "--exact", "guest_recovery"],
        cwd=ROOT,
        env=os.environ | {"DURASIM_FUZZ_GUEST": str(program)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
