"""A program that uses Debian's libpmem: it survives where caches do (eadr), and is caught where they do not (adr).

`make test-programs` runs this. The riscv64 build of libpmem has no instruction to write lines back, so pmem_persist
leaves stores in the caches; the cause that durasim names is the store before it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import durasim as ds
from durasim.documents.causes import cause_lines

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "libpmem-root"
SOURCE = Path(__file__).resolve().parent / "drivers" / "libpmem_counter.c"
PROGRAM = FOLDER / "usr" / "bin" / "libpmem_counter"


def compile_program() -> None:
    """Compiles the program with the C library and libpmem of the folder."""
    libraries = FOLDER / "usr" / "lib" / "riscv64-linux-gnu"
    command = [
        sys.executable, "-m", "ziglang", "cc", "-target", "riscv64-linux-gnu.2.38", "-O2", "-g", SOURCE,
        "-I", FOLDER / "usr" / "include", "-L", libraries, "-lpmem", "-o", PROGRAM,
    ]  # fmt: skip
    subprocess.run(command, check=True)


def crash(domain: str) -> ds.CrashResult:
    """Crashes the program in a persistence domain."""
    return ds.crash(
        design="opt", machine="tiny", domain=domain, elf=PROGRAM, root=FOLDER, args=["run"], check_args=["check"],
        points=100,
    )  # fmt: skip


def main() -> None:
    """Crashes the program in both domains, and prints the verdicts."""
    if not (FOLDER / "packages.sha256").is_file():
        subprocess.run([ROOT / "tools" / "riscv64_root.sh", FOLDER, "libpmem-dev", "libpmem1"], check=True)
    compile_program()
    lost, kept = crash("adr"), crash("eadr")
    for result in (lost, kept):
        print(f"libpmem under {result.domain}: {result.trials} crashes, {result.violations} violations")
    print(*cause_lines(lost.causes or {"not_searched": "there is none"}), sep="\n")
    line = 1 + SOURCE.read_text(encoding="utf-8").splitlines().index("        pool->values[i] = 3 * i + 1;")
    found = [store["at"]["line"] for cause in (lost.causes or {"found": []})["found"] for store in cause["stores"]]
    is_right = lost.violations > 0 and kept.violations == 0 and kept.trials > lost.points and line in found
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
