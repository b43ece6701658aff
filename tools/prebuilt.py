"""Compiles the workloads for every runtime and packs them into python/durasim/prebuilt, for the wheel.

    .venv/bin/python -m tools.prebuilt

Each program is packed as `durasim run` and as `durasim crash` use it, the latter with the history of its operations. A
program that was compiled before is taken from build/guest.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from durasim.programs import prebuilt, toolchain


def programs() -> list[tuple[str, str, bool]]:
    """Returns the workload, the runtime and whether the history is included, of all packed programs."""
    return [
        (work.name, runtime.name, history)
        for work in toolchain.workloads()
        for runtime in toolchain.backends()
        if work.interface in runtime.interfaces
        for history in (False, True)
    ]


def main() -> None:
    """Compiles, packs, and prints the size of the packs."""
    begin, wanted = time.monotonic(), programs()
    # An index of an earlier commit would describe its compiler.
    shutil.rmtree(prebuilt.FOLDER, ignore_errors=True)
    with ThreadPoolExecutor(toolchain.PARALLEL_BUILDS) as pool:
        paths = list(pool.map(lambda of: toolchain.build(of[0], of[1], history=of[2]), wanted))
    packs: dict[str, dict[str, bytes]] = {}
    for (workload, _, _), path in zip(wanted, paths, strict=True):
        packs.setdefault(workload, {})[path.name] = path.read_bytes()
    using = dataclasses.asdict(toolchain.compiler())
    del using["command"]
    prebuilt.pack(packs, using, prebuilt.FOLDER)
    size_bytes = sum(path.stat().st_size for path in prebuilt.FOLDER.iterdir())
    print(
        f"packed {len(wanted)} guest programs into {size_bytes / 1e6:.1f} MB in {time.monotonic() - begin:.0f} s",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
