"""Counts the guest instructions that qemu-riscv64 executes in user mode.

    python tools/qemu_instructions.py PROGRAM [ARGUMENTS...]

qemu translates one instruction at a time and writes a line for each executed one; the lines are counted and discarded.
The program has an empty environment, pipes for its three standard files and one core, because allocators depend on the
number of cores. tests/programs/known_length.S has a known number of instructions and shows that the count is exact. It
is exact only for programs with one thread.

If a program hints at an occupied address, qemu allocates memory from the host at a random address. Programs that align
such memory then execute a few instructions more or less: `counts` returns several runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

CHUNK_BYTES = 1 << 20
# Start of a log line of an executed instruction, after the end of the previous line.
EXECUTED = b"\nTrace "


@dataclass(frozen=True)
class Executed:
    """Exit of a program under qemu, and its number of instructions."""

    instructions: int
    exit_code: int
    stdout: bytes


def find_qemu() -> str | None:
    """Returns the qemu of this machine for RISC-V programs, or None."""
    return shutil.which("qemu-riscv64") or shutil.which("qemu-riscv64-static")


def version(qemu: str) -> tuple[int, int]:
    """Major and minor number of the version."""
    words = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=True).stdout.split()
    major, minor, *_ = words[words.index("version") + 1].split(".")
    return int(major), int(minor)


def count(qemu: str, program: str, arguments: Sequence[str] = (), folder: Path | None = None) -> Executed:
    """Runs `program`, a path that is also its first argument, in `folder` on one core and counts its instructions.

    Raises subprocess.CalledProcessError if qemu does not support the options for counting.
    """
    one_at_a_time = "-singlestep" if version(qemu) < (8, 1) else "-one-insn-per-tb"
    out_of_log, into_log = os.pipe()
    core = min(os.sched_getaffinity(0))
    command = [
        "taskset",
        "--cpu-list",
        str(core),
        qemu,
        one_at_a_time,
        "-d",
        "nochain,exec",
        "-D",
        f"/dev/fd/{into_log}",
        program,
        *arguments,
    ]
    running = subprocess.Popen(
        command, cwd=folder, env={}, pass_fds=[into_log],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(into_log)
    counted: list[int] = []
    counter = threading.Thread(target=lambda: counted.append(_count_lines(os.fdopen(out_of_log, "rb"))))
    counter.start()
    stdout, stderr = running.communicate()
    counter.join()
    if not counted[0]:
        raise subprocess.CalledProcessError(running.returncode, command, stdout, stderr)
    return Executed(counted[0], running.returncode, stdout)


def _count_lines(log: IO[bytes]) -> int:
    found, tail = 0, b"\n"
    with log:
        while chunk := log.read(CHUNK_BYTES):
            text = tail + chunk
            found += text.count(EXECUTED)
            # Shorter than the pattern, so no match is counted twice.
            tail = text[-(len(EXECUTED) - 1) :]
    return found


def main(words: list[str]) -> int:
    """The command line."""
    qemu = find_qemu()
    if not words or qemu is None:
        print("usage: qemu_instructions.py PROGRAM [ARGUMENTS...], with qemu-riscv64 installed", file=sys.stderr)
        return 2
    done = count(qemu, words[0], words[1:])
    print(f"{done.instructions} instructions, exit code {done.exit_code}, {len(done.stdout)} bytes on standard output")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
