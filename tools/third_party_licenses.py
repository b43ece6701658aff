"""Writes the licences of all that is linked into the built module and into the packed guest programs, for the wheel.

The list of crates comes from `cargo metadata`, their texts from the crates themselves. The texts of the libraries in
guest programs come from the package `ziglang`, which compiles them.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "python" / "durasim" / "third_party_licenses.txt"
ROOT_PACKAGE = "durasim-py"
HOST = "x86_64-unknown-linux-gnu"
NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "UNLICENSE", "NOTICE")
# Some crates contain the sources of a C library with its own licence.
DEPTH = 2
RULE = "=" * 78
# Libraries that ziglang links into guest programs, with the files of their licences below its folder.
GUEST_LIBRARIES = {
    "musl": "lib/libc/musl/COPYRIGHT",
    "libc++": "lib/libcxx/LICENSE.TXT",
    "libc++abi": "lib/libcxxabi/LICENSE.TXT",
    "libunwind": "lib/libunwind/LICENSE.TXT",
    "compiler-rt of zig": "LICENSE",
}


def _metadata() -> Mapping[str, Any]:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", HOST]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def linked_packages() -> list[Mapping[str, Any]]:
    """Returns the third-party packages with code in the built module, by name and version."""
    metadata = _metadata()
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    wanted = [next(id_ for id_, package in packages.items() if package["name"] == ROOT_PACKAGE)]
    seen: set[str] = set()
    while wanted:
        id_ = wanted.pop()
        if id_ in seen:
            continue
        seen.add(id_)
        for dependency in nodes[id_]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_linked and not _is_macro(packages[dependency["pkg"]]):
                wanted.append(dependency["pkg"])
    found = (packages[id_] for id_ in seen if packages[id_]["source"] is not None)
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def _is_macro(package: Mapping[str, Any]) -> bool:
    """Whether the package runs only in the compiler."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


def _texts(package: Mapping[str, Any]) -> Iterator[str]:
    folder = Path(package["manifest_path"]).parent
    for depth in range(DEPTH):
        for path in sorted(folder.glob("*/" * depth + "*")):
            if path.is_file() and path.name.upper().startswith(NAMES):
                yield path.read_text(encoding="utf-8", errors="replace").strip().replace("\r\n", "\n")


def text() -> str:
    """Returns the text of the file."""
    packages = linked_packages()
    users: dict[str, list[str]] = defaultdict(list)
    lines = [
        "The built module of durasim contains code of the Rust standard library (MIT OR Apache-2.0) and of these",
        "crates. The licence texts follow, each once, with all that it came with.",
        "",
    ]
    for package in packages:
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name}: {package['license']}")
        for content in dict.fromkeys(_texts(package)):
            users[content].append(name)
    lines += ["", f"The packed guest programs contain code of {', '.join(GUEST_LIBRARIES)}."]
    folder = Path(importlib.util.find_spec("ziglang").submodule_search_locations[0])
    for name, file in GUEST_LIBRARIES.items():
        users[(folder / file).read_text(encoding="utf-8", errors="replace").strip()].append(name)
    for content, names in users.items():
        lines += ["", RULE, ", ".join(names), RULE, "", content]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the file."""
    FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
