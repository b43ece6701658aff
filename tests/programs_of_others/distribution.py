"""Programs of a Debian release for riscv64, as they are: output and exit code equal those under qemu-riscv64.

`make test-programs` runs this. tools/riscv64_root.sh downloads the packages of packages.txt. Programs are drawn from
them by the hash of the tree, and each prints its version; with --all, all of them. CASES do a little work. Both
emulators see the folder of packages as their files.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import struct
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from durasim import _core

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "riscv64-root"
QEMU = shutil.which("qemu-riscv64") or shutil.which("qemu-riscv64-static")
PACKAGES = Path(__file__).with_name("packages.txt").read_text(encoding="utf-8").split()
DRAWN = 200
LIMIT_INSTRUCTIONS = 3_000_000_000
TIMEOUT_S = 60
# Of section headers, and of vsetvli and its like.
_PROGBITS, _EXECUTABLE = 1, 4
_VECTOR_OPCODE, _VECTOR_SET = 0x57, 0x70
ENVIRONMENT = {"HOME": "/root"}
WORDS = "/usr/share/common-licenses/BSD"
THREADS = """
import threading
sums = [0] * 4
def add(n):
    for i in range(20000):
        sums[n] += i * n
threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sums)
"""
LEVELDB = """
import plyvel
with plyvel.DB("/tmp/durasim-db", create_if_missing=True, write_buffer_size=65536) as db:
    for i in range(4000):
        db.put(b"%d" % (i * 7919 % 4001), b"value %d" % i, sync=i % 100 == 0)
with plyvel.DB("/tmp/durasim-db") as db:
    print(sum(1 for _ in db), db.get(b"77"), db.get(b"none"))
    db.compact_range()
plyvel.destroy_db("/tmp/durasim-db")
"""
CASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("/usr/bin/bash", ("-c", "a=(3 1 2); for i in ${a[@]}; do echo $((i * i)); done; printf '%05.2f\\n' 3.14159")),
    ("/usr/bin/perl", ("-e", "%h = map { $_ => $_ ** 2 } 1 .. 9; print join(',', @h{sort keys %h}), qq(\\n)")),
    ("/usr/bin/lua5.4", ("-e", "t = {} for i = 1, 2000 do t[i] = i % 7 end print(table.concat(t, '', 1, 20))")),
    ("/usr/bin/python3.13", ("-c", "import json; print(json.dumps(json.loads('[1.5, {\"a\": [null, true]}]') * 3))")),
    ("/usr/bin/python3.13", ("-c", THREADS)),
    ("/usr/bin/python3.13", ("-c", LEVELDB)),
    # Loops of OpenMP.
    ("/usr/bin/primecount", ("1e11", "--threads=4")),
    ("/usr/bin/sqlite3", (":memory:", "create table t(a); insert into t values (1), (2); select sum(a) from t")),
    ("/usr/bin/rg", ("--sort", "path", "-c", "conditions", "/usr/share/common-licenses")),
    ("/usr/bin/jq", ("-n", "[range(10) | select(. % 3 == 0)] | add")),
    ("/usr/bin/rclone", ("--config", "", "hashsum", "sha1", WORDS)),
)


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
    given: dict[str, Any] = {"env": ENVIRONMENT, "input": b"", "timeout": TIMEOUT_S, "cwd": "/"}
    try:
        done = subprocess.run(command, check=False, capture_output=True, **given)
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
        "env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
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


def has_vectors(path: Path) -> bool:
    """Whether a file has an instruction that configures the vector unit, without which no other one works."""
    elf = path.read_bytes()
    table, count = int.from_bytes(elf[40:48], "little"), int.from_bytes(elf[60:62], "little")
    for number in range(count):
        _, kind, flags, _, offset, size = struct.unpack_from("<IIQQQQ", elf, table + 64 * number)
        if kind == _PROGBITS and flags & _EXECUTABLE:
            code = elf[offset : offset + size]
            at = 0
            while at + 4 <= len(code):
                if code[at] & 3 != 3:
                    at += 2
                    continue
                if code[at] & 0x7F == _VECTOR_OPCODE and code[at + 1] & 0x70 == _VECTOR_SET:
                    return True
                at += 4
    return False


def count_vectors() -> None:
    """Prints the share of programs and libraries with vector instructions."""
    files = {path.resolve() for folder in ("bin", "lib") for path in (FOLDER / "usr" / folder).rglob("*")}
    elves = [path for path in sorted(files) if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    found = [path for path in elves if has_vectors(path)]
    print(
        f"{len(found)} of {len(elves)} programs and libraries have vector instructions:", *(path.name for path in found)
    )


def drawn(every: list[str]) -> list[str]:
    """Returns the programs drawn by the hash of the tree."""
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
    """Runs the programs, and prints the number of equal ends and the reasons of the others."""
    parser = argparse.ArgumentParser(description="Compare programs of a Debian release with qemu-riscv64.")
    parser.add_argument("--all", action="store_true", help="every program of the packages, not 200 drawn ones")
    parser.add_argument("--vectors", action="store_true", help="count the files with vector instructions, and end")
    given = parser.parse_args()
    if not (FOLDER / "packages.sha256").is_file():
        subprocess.run([ROOT / "tools" / "riscv64_root.sh", FOLDER, *PACKAGES], check=True)
    if given.vectors:
        count_vectors()
        return
    if QEMU is None:
        print("programs of a distribution are not run: qemu-riscv64, which they are compared with, is not installed")
        return
    begin, equal, asked, reasons = time.monotonic(), 0, 0, Counter[str]()
    every = programs()
    versions = [(program, ("--version",)) for program in (every if given.all else drawn(every))]
    for program, arguments in (*versions, *CASES):
        there = under_qemu(program, arguments)
        if there is None:
            print(f"{program}: does not end under qemu")
            continue
        here = under_durasim(program, arguments)
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
