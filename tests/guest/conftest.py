"""Builds the guest programs for the host, unless that has been done before."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

import pytest
from guest_programs import HERE, ROOT, TOOLCHAIN, NativeBuild, execute

FLAGS = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-pthread"]


@pytest.fixture(scope="session")
def native() -> NativeBuild:
    """native(workload, backend, hooks="", history=False, planted=False) builds a workload, native("api_test", backend)
    the test of the API; `structures_test`, `objects_test` and `object_crashes` likewise. `before` is the name of a
    header that is included in front of the program."""
    if shutil.which("g++") is None:
        pytest.skip("skipped: there is no g++ for the host")
    guest = ROOT / "guest"
    read = (*sorted(guest.rglob("*.h")), *sorted(HERE.glob("*.h")), *sorted(HERE.glob("*.cpp")))
    sources = [path.read_bytes() for path in read]
    version = execute(["g++", "--version"]).text
    common = hashlib.blake2b(b"\0".join([version.encode(), *sources]), digest_size=16)
    built: dict[tuple[str, str, str, bool, bool, tuple[str, ...], str], Path] = {}

    def build(
        name: str,
        backend: str,
        hooks: str = "",
        *,
        history: bool = False,
        planted: bool = False,
        defines: tuple[str, ...] = (),
        before: str = "",
    ) -> Path:
        key = (name, backend, hooks, history, planted, defines, before)
        if key in built:
            return built[key]
        define = next(info.define for info in TOOLCHAIN.backends() if info.name == backend)
        source, header = HERE / f"{name}.cpp", ""
        if not source.is_file():
            source = guest / "workloads" / f"{name}.cpp"
            header = TOOLCHAIN.arguments_header(name, backend, history=history, planted=planted)
        flags: list[str | Path] = [*FLAGS, f"-I{guest / 'include'}", f"-I{guest}", f"-D{define}"]
        flags += [*(f"-D{one}" for one in defines), source]
        if before:
            flags += ["-include", HERE / f"{before}.h"]
        if history:
            flags.append("-DDURASIM_HISTORY")
        if planted:
            flags.append("-DDURASIM_PLANTED")
        if hooks:
            flags += ["-DDURASIM_TEST_HOOKS", HERE / f"{hooks}.cpp"]
        digest = common.copy()
        digest.update("\0".join([*map(str, flags), header]).encode() + source.read_bytes())
        program = ROOT / "build" / "native" / f"{name}-{digest.hexdigest()}"
        if not program.is_file():
            compile_native([*parsed_headers(common.hexdigest()), *flags], header, program)
        built[key] = program
        return program

    return build


def parsed_headers(digest: str) -> list[str | Path]:
    """Gives flags with which g++ takes headers of the C++ library as it has parsed them once, with the same flags."""
    folder = ROOT / "build" / "native"
    header = folder / f"headers-{digest}.hpp"
    parsed = header.with_suffix(".hpp.gch")
    if not parsed.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            partial = Path(temporary) / parsed.name
            source = ROOT / "guest" / "standard_headers.hpp"
            outcome = execute(["g++", *FLAGS, "-x", "c++-header", source, "-o", partial])
            assert outcome.code == 0, outcome.text
            partial.replace(parsed)
    # What is parsed stands beside a header of the same name, which is read where the compiler refuses it.
    header.write_text(f'#include "{ROOT / "guest" / "standard_headers.hpp"}"\n')
    return ["-include", header]


def compile_native(flags: list[str | Path], header: str, program: Path) -> None:
    """Whoever looks sees a whole program or none: tests run in several processes."""
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        (Path(folder) / "durasim_arguments.h").write_text(header)
        partial = Path(folder) / "program"
        outcome = execute(["g++", *flags, f"-I{folder}", "-o", partial])
        assert outcome.code == 0, outcome.text
        partial.replace(program)
