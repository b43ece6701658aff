"""Builds the guest programs for the host, once per test session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from guest_programs import HERE, ROOT, TOOLCHAIN, NativeBuild, execute


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> NativeBuild:
    """native(workload, backend, hooks="", history=False) builds a workload, native("api_test", backend) the test of the
    API; `structures_test` likewise."""
    if shutil.which("g++") is None:
        pytest.skip("skipped: there is no g++ for the host")
    folder = tmp_path_factory.mktemp("native")
    built: dict[tuple[str, str, str, bool], Path] = {}

    def build(name: str, backend: str, hooks: str = "", *, history: bool = False) -> Path:
        key = (name, backend, hooks, history)
        if key in built:
            return built[key]
        place = folder / "-".join((name, backend, hooks or "plain", "history" if history else ""))
        place.mkdir()
        guest = ROOT / "guest"
        define = next(info.define for info in TOOLCHAIN.backends() if info.name == backend)
        source = HERE / f"{name}.cpp"
        if not source.is_file():
            source = guest / "workloads" / f"{name}.cpp"
            (place / "durasim_arguments.h").write_text(TOOLCHAIN.arguments_header(name, backend, history=history))
        program = place / "program"
        command: list[str | Path] = [
            "g++",
            *["-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-pthread"],
        ]
        command += [f"-I{guest / 'include'}", f"-I{guest}", f"-I{place}", f"-D{define}", source, "-o", program]
        if history:
            command.append("-DDURASIM_HISTORY")
        if hooks:
            command += ["-DDURASIM_TEST_HOOKS", HERE / f"{hooks}.cpp"]
        outcome = execute(command)
        assert outcome.code == 0, outcome.text
        built[key] = program
        return program

    return build
