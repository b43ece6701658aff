"""The fuzz body that runs a guest's own recovery. The program is built here: Rust tests have no compiler for it."""

import os
import subprocess
from pathlib import Path

import pytest

from durasim.programs import toolchain

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("workload", "backend", "target"),
    [
        ("array-swap", "undo-flush", "guest_recovery"),
        ("btree", "undo-flush", "guest_recovery"),
        ("array-swap", "redo-flush", "guest_redo_recovery"),
        ("btree", "redo-flush", "guest_redo_recovery"),
        ("btree", "write-ahead", "guest_write_ahead_recovery"),
    ],
)
def test_mutated_pools_are_recovered_or_refused(workload, backend, target):
    program = toolchain.build(workload, backend)
    # The whole workspace, as built by `make test`: a single package may need other features of its libraries.
    command = ["cargo", "test", "--quiet", "--locked", "--workspace", "--test", "targets"]
    done = subprocess.run(
        [*command, "--", "--ignored", "--exact", target],
        cwd=ROOT,
        env=os.environ | {"DURASIM_FUZZ_GUEST": str(program)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
