"""Builds C programs that use the macros of the STAMP benchmarks, for any transaction runtime.

    python -m durasim.stamp --backend undo-flush --output bank-undo-flush guest/examples/stamp/bank.c

docs/programs-of-others.md lists the guarantees for such a program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from durasim import output
from durasim.errors import HostIoError
from durasim.programs import toolchain, workload_tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds one program and returns the exit code."""
    runtimes = ", ".join(backend.name for backend in workload_tables.backends())
    parser = argparse.ArgumentParser(prog="python -m durasim.stamp", description="Build a STAMP program for durasim.")
    parser.add_argument("sources", nargs="+", metavar="SOURCE.c")
    parser.add_argument("--backend", required=True, help=f"runtime: {runtimes}")
    parser.add_argument("--output", required=True, metavar="PROG", help="the executable to build")
    parser.add_argument("-I", dest="folders", action="append", default=[], metavar="DIR", help="folder of headers")
    parser.add_argument("-D", dest="macros", action="append", default=[], metavar="NAME[=VALUE]", help="macro")
    chosen = parser.parse_args(arguments)
    flags = [*(f"-I{folder}" for folder in chosen.folders), *(f"-D{macro}" for macro in chosen.macros)]
    try:
        output.check_writable(chosen.output)
        toolchain.build_stamp(chosen.sources, chosen.backend, chosen.output, flags)
    except toolchain.ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except HostIoError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
