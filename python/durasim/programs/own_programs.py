"""Compiles programs of the user, in C or C++, with the toolchain of guest programs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from durasim.errors import ToolchainError, refusal
from durasim.programs import toolchain
from durasim.programs.workload_tables import SOURCE_SUFFIXES

_MACRO = re.compile(r"[A-Za-z_]\w*(=.*)?", re.DOTALL)
_LANGUAGES = {".c": ("-x", "c", "-std=gnu17"), **dict.fromkeys(SOURCE_SUFFIXES, ("-x", "c++"))}


def compiler_flags(macros: Iterable[str], include_folders: Iterable[str]) -> tuple[str, ...]:
    """Returns the flags of the compiler for macros and folders of headers.

    Raises:
        ConfigError: A macro is not of the form NAME or NAME=VALUE, or a folder does not exist.
    """
    macros, folders = list(macros), list(include_folders)
    for macro in macros:
        if not _MACRO.fullmatch(macro):
            raise refusal("D", f"{macro!r} is not of the form NAME or NAME=VALUE")
    for folder in folders:
        if not Path(folder).is_dir():
            raise refusal("I", f"the folder {folder} does not exist")
    return (*(f"-D{macro}" for macro in macros), *(f"-I{Path(folder).resolve()}" for folder in folders))


def compile_sources(sources: Sequence[str], output: str, flags: Sequence[str] = (), backend: str | None = None) -> Path:
    """Compiles C and C++ sources to a static RV64GC Linux executable.

    Args:
        sources: The source files; the end of a name says its language: ``.c``, ``.cpp``, ``.cc`` or ``.cxx``.
        output: The executable.
        flags: Additional flags for the compiler.
        backend: The transaction runtime of ``durasim/tx.h``; None for sources that do not include it.

    Returns:
        ``output``.

    Raises:
        ToolchainError: No source is given, a source is missing or of another language, the runtime is unknown, or the
            compiler reports an error.
    """
    if not sources:
        raise ToolchainError(f"there is no source to compile to {output}: give at least one C or C++ source")
    define = () if backend is None else (f"-D{toolchain.backend_named(backend).define}",)
    for source in map(Path, sources):
        if source.suffix not in _LANGUAGES:
            *others, last = _LANGUAGES
            raise ToolchainError(
                f"{source} is not a C or C++ source: its name does not end in {', '.join(others)} or {last}"
            )
        if not source.is_file():
            raise ToolchainError(f"the source file {source} does not exist") from FileNotFoundError()
        if Path(output).exists() and source.samefile(output):
            raise ToolchainError(f"the executable {output} would replace a source")
    with tempfile.TemporaryDirectory(prefix="durasim-") as place:
        objects = []
        for number, source in enumerate(map(Path, sources)):
            made = Path(place) / f"{number}.o"
            toolchain.compile_file(source, made, (*_LANGUAGES[source.suffix], "-c", *define, *flags))
            objects.append(str(made))
        first, *others = objects
        return toolchain.compile_file(Path(first), Path(output), others)
