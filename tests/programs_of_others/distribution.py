"""Programs of a Debian release for riscv64, as they are: output and exit code equal those under qemu-riscv64.

`make test-programs` runs this. tools/riscv64_root.sh downloads the packages of packages.txt. Programs are drawn from
them by the hash of the tree, and each prints its version. Both emulators see the folder of packages as their files, and
no environment.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from durasim import _core

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "riscv64-root"
QEMU = shutil.which("qemu-riscv64") or shutil.which("qemu-riscv64-static")
PACKAGES = Path(__file__).with_name("packages.txt").read_text(encoding="utf-8").split()
DRAWN = 200
LIMIT_INSTRUCTIONS = 3_000_000_000
TIMEOUT_S = 60


@dataclass(frozen=True)
class Ending:
    """The end of a program; `problem` is a sentence of the simulator that ended it."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    problem: str = ""


def under_qemu(program: str, arguments: tuple[str, ...]) -> Ending | None:
    """Runs a program of the folder under qemu; None if it does not end by itself."""
    command = [str(QEMU), "-L", FOLDER, "-0", program, FOLDER / program[1:], *arguments]
    try:
        done = subprocess.run(command, check=False, capture_output=True, env={}, input=b"", timeout=TIMEOUT_S, cwd="/")
    except subprocess.TimeoutExpired:
        return None
    return Ending(done.returncode, done.stdout, done.stderr)


def under_durasim(program: str, arguments: tuple[str, ...]) -> Ending:
    """Runs a program of the folder functionally."""
    written: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    def take(stream: str, data: bytes) -> None:
        written[stream] += data

    request = {
        "machine": "hercules-tecs23-modern", "design": "opt", "elf": str(FOLDER / program[1:]), "elf_name": program,
        "exe_link": f"/{(FOLDER / program[1:]).resolve().relative_to(FOLDER)}", "args": list(arguments), "seed": 1,
        "workload": program, "functional": True, "max_instructions": LIMIT_INSTRUCTIONS, "root": str(FOLDER),
        "control": True,
    }  # fmt: skip
    try:
        result = json.loads(_core.run(json.dumps(request), take))
    except Exception as error:  # noqa: BLE001 - every refusal is counted
        return Ending(-1, written["stdout"], written["stderr"], str(error).splitlines()[0])
    return Ending(result["guest_exit_code"] if result["guest_exit_code"] is not None else -1, **written)


def programs() -> list[str]:
    """Returns the programs of the folder, as paths in it."""
    found = []
    for path in sorted((FOLDER / "usr" / "bin").iterdir()):
        target = path.resolve()
        if target.is_relative_to(FOLDER) and target.is_file():
            head = target.read_bytes()[:20]
            if head[:4] == b"\x7fELF" and head[18:20] == b"\xf3\0":
                found.append(f"/usr/bin/{path.name}")
    return found


def drawn() -> list[str]:
    """Returns the programs drawn by the hash of the tree."""
    every = programs()
    command = ["git", "rev-parse", "HEAD^{tree}"]
    tree = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    return sorted(random.Random(tree).sample(every, min(DRAWN, len(every))))  # noqa: S311 - a draw for tests


def reason(there: Ending, here: Ending) -> str:
    """Returns the reason why two ends differ, without the numbers of the case."""
    if here.problem:
        return re.sub(r"0x[0-9a-f]+|\d+", "N", here.problem)
    if there.exit_code != here.exit_code:
        return f"exit code {here.exit_code} in place of {there.exit_code}"
    return "other output" if there.stdout != here.stdout else "other output on standard error"


def main() -> None:
    """Runs the drawn programs, and prints the number of equal ends and the reasons of the others."""
    if QEMU is None:
        print("programs of a distribution are not run: qemu-riscv64, which they are compared with, is not installed")
        return
    if not (FOLDER / "packages.sha256").is_file():
        subprocess.run([ROOT / "tools" / "riscv64_root.sh", FOLDER, *PACKAGES], check=True)
    begin, equal, asked, reasons = time.monotonic(), 0, 0, Counter[str]()
    for program in drawn():
        there = under_qemu(program, ("--version",))
        if there is None:
            print(f"{program}: does not end under qemu")
            continue
        here = under_durasim(program, ("--version",))
        asked += 1
        if there == here:
            equal += 1
            continue
        reasons[reason(there, here)] += 1
        print(f"{program}: {here.problem or reason(there, here)}")
    print(f"{equal} of {asked} programs end as under qemu, in {time.monotonic() - begin:.0f} s")
    for text, count in reasons.most_common():
        print(f"  {count}: {text}")
    sys.exit(0 if equal >= 0.9 * asked else 1)


if __name__ == "__main__":
    main()
