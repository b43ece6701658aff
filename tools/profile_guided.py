"""A module that the compiler has optimised with a profile of runs, for wheels alone.

Runs of all designs write the profile; two workloads are held out. On these the optimised module is compared with the
plain one: digests have to be equal, and the ratio of their speeds is printed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from durasim.runs.scenario import design_variants, workloads_of

HELD_OUT = ("btree", "array-swap")
"""Workloads that write no profile: the speed on them is that on programs that the compiler has not seen."""
WORKLOADS_PER_DESIGN = 4
TRAINING_OPS = 400
COMPARED_OPS = 4_000
REPETITIONS = 3


def _rustc(*arguments: str) -> str:
    command = ["rustc", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def find_profile_tool() -> str:
    """Returns the llvm-profdata of the LLVM that rustc has; exits with a sentence if there is none."""
    about = _rustc("-vV")
    host, major = re.search(r"^host: (\S+)$", about, re.M), re.search(r"^LLVM version: (\d+)", about, re.M)
    if host is None or major is None:
        sys.exit("rustc -vV names no host or LLVM version")
    own = Path(_rustc("--print", "sysroot").strip()) / "lib" / "rustlib" / host[1] / "bin" / "llvm-profdata"
    for candidate in (str(own), f"llvm-profdata-{major[1]}", f"/usr/lib/llvm-{major[1]}/bin/llvm-profdata"):
        if (found := shutil.which(candidate)) is not None:
            return found
    sys.exit(
        f"a profile needs llvm-profdata of LLVM {major[1]}: install the package llvm-{major[1]}, "
        "or run `rustup component add llvm-tools`"
    )


def training() -> Iterator[tuple[str, str]]:
    """Yields pairs of design and workload: each design has some workloads, in turn, so that all are used."""
    for number, design in enumerate(design_variants()):
        offered = [info.name for info in workloads_of(design) if info.name not in HELD_OUT]
        first = number * WORKLOADS_PER_DESIGN % len(offered)
        count = min(WORKLOADS_PER_DESIGN, len(offered))
        yield from ((design, name) for name in islice(cycle(offered), first, first + count))


@dataclass(frozen=True)
class Installed:
    """A wheel that is unpacked into a folder, with what it needs from the environment of this process."""

    folder: Path

    @classmethod
    def of(cls, wheel: Path, folder: Path) -> Installed:
        """Installs a wheel, without what it depends on, into an empty folder."""
        shutil.rmtree(folder, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True)
        return cls(folder)

    def run(self, design: str, workload: str, ops: int, **environment: str) -> tuple[str, float]:
        """Returns the digest of a run and its speed in million instructions per second."""
        words = ["--design", design, "--workload", workload, "--ops", str(ops), "--json", "-"]
        done = subprocess.run(
            [sys.executable, "-m", "durasim", "run", *words],
            env=os.environ | {"PYTHONPATH": str(self.folder)} | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"{workload} under {design} exits with {done.returncode}: {done.stderr.strip()[-500:]}")
        document = json.loads(done.stdout)
        return document["digest"], document["host"]["mips"]


def profile(instrumented: Installed, folder: Path) -> Path:
    """Returns the merged profile of the training runs."""
    tool = find_profile_tool()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for design, workload in training():
        instrumented.run(design, workload, TRAINING_OPS, LLVM_PROFILE_FILE=str(folder / "%p-%m.profraw"))
    merged = folder / "merged.profdata"
    subprocess.run([tool, "merge", "-o", str(merged), *map(str, sorted(folder.glob("*.profraw")))], check=True)
    return merged


def compare(plain: Installed, guided: Installed) -> str:
    """Returns the sentence about the speed on the workloads that were held out; exits if a digest differs."""
    ratios = {}
    for design in design_variants():
        for workload in sorted({info.name for info in workloads_of(design)} & set(HELD_OUT)):
            pairs = [
                [module.run(design, workload, COMPARED_OPS) for module in (plain, guided)] for _ in range(REPETITIONS)
            ]
            if len({digest for pair in pairs for digest, _ in pair}) != 1:
                sys.exit(f"{workload} under {design}: the optimised module gives another digest")
            ratios[f"{design}/{workload}"] = statistics.median(after[1] / before[1] for before, after in pairs)
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return (
        f"profile-guided: {statistics.median(ratios.values()):.2f} times the speed of the plain build (median of "
        f"{len(ratios)} pairs of design and held-out workload; {ratios[least]:.2f} {least} to {ratios[most]:.2f} "
        f"{most}), equal digests"
    )
