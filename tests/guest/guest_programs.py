"""Common helpers of the tests of guest programs. The toolchain module is loaded alone: these tests need neither the
simulator nor the rest of the package."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


def _load_toolchain() -> ModuleType:
    name = "durasim_toolchain_under_test"
    spec = importlib.util.spec_from_file_location(name, ROOT / "python" / "durasim" / "programs" / "toolchain.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


TOOLCHAIN = _load_toolchain()
# Programs with transactions; those with objects are in test_objects.py.
INFOS = [info for info in TOOLCHAIN.workloads() if info.interface == "transactions"]
WORKLOADS = [info.name for info in INFOS]
OBJECT_WORKLOADS = [info.name for info in TOOLCHAIN.workloads() if info.interface == "objects"]
# Arguments of a run short enough for a power failure at each of its steps.
SMALL = {
    info.name: [text for name, value in info.small.items() for text in (f"--{name}", str(value))]
    for info in TOOLCHAIN.workloads()
}
SMALL_POPULATE = {info.name: int(info.small["populate"]) for info in TOOLCHAIN.workloads()}
BACKENDS = [info.name for info in TOOLCHAIN.backends() if "transactions" in info.interfaces]
OBJECT_BACKENDS = [info.name for info in TOOLCHAIN.backends() if "objects" in info.interfaces]
UNDO_BACKENDS = ["undo-flush", "undo-fence"]
# Runtimes that undo or complete transactions in software, with a log in the pool.
LOG_BACKENDS = [
    *UNDO_BACKENDS,
    "redo-flush",
    "write-ahead",
    "htm-sgl",
    "spht-eadr",
    "spht-eadr-flush",
    "spht",
    "nv-htm",
]
# Runtimes are tested with these workloads; workloads with one runtime.
CROSSED = ["btree"]


def pairs(backends: list[str], one: str) -> list[tuple[str, str]]:
    """Workloads with runtimes: the crossed ones with all of `backends`, the others with `one` of them."""
    return [
        (workload, backend) for workload in WORKLOADS for backend in backends if workload in CROSSED or backend == one
    ]


QEMU = shutil.which("qemu-riscv64-static") or shutil.which("qemu-riscv64")


@dataclass(frozen=True)
class Outcome:
    """Exit code and combined output of a program."""

    code: int
    text: str


def execute(command: list[str | Path], **environment: object) -> Outcome:
    """Runs a program with additional environment variables."""
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Outcome(done.returncode, done.stdout + done.stderr)


NativeBuild = Callable[..., Path]
"""native(workload, backend, hooks="") builds a workload, native("api_test", backend) the test of the API; `hooks` names
the source linked as the machine below it, `power_failure`, `aborts`, `history` or `object_turns`; `history`
makes the workload report its operations, and `planted` gives its runtime faults."""
