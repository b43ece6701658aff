"""Builds the guest programs for the host, unless they are cached."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from guest_programs import HERE, ROOT, TOOLCHAIN, NativeBuild, execute

import compiled

GUEST = ROOT / "guest"
FLAGS = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-pthread"]
INCLUDES = [f"-I{GUEST / 'include'}", f"-I{GUEST}"]


@pytest.fixture(scope="session")
def native() -> NativeBuild:
    """native(workload, backend, hooks="", history=None, planted=False) builds a workload, native("api_test", backend)
    the test of the API; `structures_test`, `objects_test` and `object_crashes` likewise. `before` is the name of a
    header that is included in front of the program.

    A workload reports its history unless `history` is False, with the hooks `history` by default, so one compilation
    serves most tests. The tests of the API are built unchanged."""
    if shutil.which("g++") is None:
        pytest.skip("skipped: there is no g++ for the host")
    sources = {info.name: info.source for info in TOOLCHAIN.workloads()}
    defined = {info.name: f"-D{info.define}" for info in TOOLCHAIN.backends()}

    def build(
        name: str,
        backend: str,
        hooks: str = "",
        *,
        history: bool | None = None,
        planted: bool = False,
        defines: tuple[str, ...] = (),
        before: str = "",
    ) -> Path:
        source, header = HERE / f"{name}.cpp", ""
        is_workload = not source.is_file()
        if history is None:
            history = is_workload
            hooks = hooks or ("history" if history else "")
        if is_workload:
            source = sources[name]
            header = TOOLCHAIN.arguments_header(name, backend, history=history, planted=planted)
        flags = [*INCLUDES, defined[backend], *(f"-D{one}" for one in defines)]
        flags += ["-include", str(HERE / f"{before}.h")] if before else []
        flags += [
            f"-DDURASIM_{word}"
            for word, wanted in (("HISTORY", history), ("PLANTED", planted), ("TEST_HOOKS", hooks))
            if wanted
        ]
        objects = [_compiled(source, flags, header)]
        if hooks:
            objects.append(_compiled(HERE / f"{hooks}.cpp", [*INCLUDES, "-DDURASIM_TEST_HOOKS"]))
        return compiled.command(f"{name}-{backend}", ["g++", *FLAGS, *objects], [])

    return build


def _compiled(source: Path, flags: list[str], header: str = "") -> Path:
    """Returns the object of a source, for which `header` is durasim_arguments.h."""
    # The precompiled header is next to a header with its name, which is used if the compiler refuses the former.
    standard = GUEST / "standard_headers.hpp"
    parsed = compiled.command("standard_headers.hpp.gch", ["g++", *FLAGS, "-x", "c++-header", standard], [standard])
    included = ["-include", str(parsed.with_suffix(""))]
    if not parsed.with_suffix("").is_file():
        with tempfile.NamedTemporaryFile("w", dir=parsed.parent, delete=False) as text:
            text.write(f'#include "{standard}"\n')
        Path(text.name).replace(parsed.with_suffix(""))

    def build(output: Path) -> None:
        with tempfile.TemporaryDirectory(dir=output.parent) as folder:
            (Path(folder) / "durasim_arguments.h").write_text(header)
            outcome = execute(["g++", *FLAGS, *included, *flags, f"-I{folder}", "-c", source, "-o", output])
            assert outcome.code == 0, outcome.text

    return compiled.once(f"{source.stem}.o", [compiled.version("g++")], [source], [*FLAGS, *flags, header], build)
