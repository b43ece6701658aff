"""Files of a crate, and those of the Python package, import each other without cycles.

Code that two of them need is in a third, below both. In a crate, a child may import from its parent modules, which
declare it; as usual in Rust, that is not a cycle here. An import of a sibling's item through the parent counts as an
import from the sibling.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/src"))

UNIT_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{.*", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"//.*")
USE = re.compile(r"\buse\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")

HERCULES = ["ewpq", "ewpq_index", "extension_chain", "log_space", "migration", "state"]
# Cycles that are still to be broken. No file may join them.
KNOWN = {
    "core": {("core", "core/step", "execution")},
    # The hooks of a design use its actions and verdicts, which use the hooks.
    "contract": {("action", "crash", "hooks", "verdict")},
    # What a controller has is beside what the whole state does with it.
    "designs": {tuple(f"hercules/{name}" for name in HERCULES), ("kiln/banks", "kiln/state")},
}


def _module(source, path):
    parts = path.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("lib", "mod") else parts


def _paths(tree):
    """The imported paths of a `use`, each with its local name."""
    heads, head = [""], ""
    for word in map(str.strip, re.findall(r"[{}]|[^{},]+", tree)):
        if word == "{":
            heads.append(heads[-1] + head)
            head = ""
        elif word == "}":
            heads.pop()
        elif word.endswith("::"):
            head = word
        elif word:
            path, _, name = (heads[-1] + word).partition(" as ")
            path = path.removesuffix("::self")
            yield path, name or path.rpartition("::")[2]


class Crate:
    """The modules of a crate, with the paths used by each."""

    def __init__(self, source):
        self.paths, self.imports = {}, {}
        for file in source.rglob("*.rs"):
            code = COMMENT.sub("", UNIT_TESTS.sub("", file.read_text(encoding="utf-8")))
            imports = [pair for tree in USE.findall(code) for pair in _paths(tree)]
            module = _module(source, file)
            self.imports[module] = {name: path for path, name in imports if name not in ("*", "_")}
            self.paths[module] = {path for path, _ in imports} | set(PATH.findall(USE.sub("", code)))

    def found(self, module, path, seen=frozenset()):
        """The module that defines the item of a path, if it is in this crate."""
        first, *rest = path.split("::")
        if (*module, first) in self.paths:
            rest = [first, *rest]
        elif first == "crate":
            module = ()
        elif first == "super":
            module = module[:-1]
        elif first != "self":
            return None
        while rest and (rest[0] == "super" or (*module, rest[0]) in self.paths):
            module = module[:-1] if rest[0] == "super" else (*module, rest[0])
            rest.pop(0)
        imported = self.imports[module].get(rest[0]) if rest else None
        if imported and (module, imported) not in seen:
            return self.found(module, imported, seen | {(module, imported)}) or module
        return module

    def used(self, module):
        found = {self.found(module, path) for path in self.paths[module]} - {None}
        return {other for other in found if module[: len(other)] != other}

    def circles(self):
        used = {module: self.used(module) for module in self.paths}
        reached = {}
        for module in used:
            ahead, reached[module] = [module], set()
            while ahead:
                new = used[ahead.pop()] - reached[module]
                reached[module] |= new
                ahead.extend(new)
        circles = {frozenset(o for o in reached[m] if m in reached[o]) for m in used if m in reached[m]}
        return {tuple(sorted("/".join(module) for module in circle)) for circle in circles}


def _python_imports(root):
    """The modules of a Python package below `root`, each with those that it imports."""
    files = {
        ".".join(file.relative_to(root).with_suffix("").parts): file
        for file in root.rglob("*.py*")
        if file.suffix in (".py", ".pyi")
    }
    modules = {name.removesuffix(".__init__"): file for name, file in files.items()}
    imports = {}
    for module, file in modules.items():
        found = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {name if name in modules else node.module for name in names}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
        imports[module] = found & modules.keys()
    return imports


def test_files_of_the_python_package_import_each_other_one_way():
    imports = _python_imports(ROOT / "python")
    assert len(imports) > 40
    TopologicalSorter(imports).prepare()


def test_a_cycle_of_python_files_is_seen(tmp_path):
    (tmp_path / "one").mkdir()
    for name, code in {"__init__": "", "a": "def f():\n    from one import b", "b": "import one.a"}.items():
        (tmp_path / f"one/{name}.py").write_text(code)
    with pytest.raises(CycleError):
        TopologicalSorter(_python_imports(tmp_path)).prepare()


@pytest.mark.parametrize("source", CRATES, ids=lambda source: source.name)
def test_files_import_each_other_one_way(source):
    assert Crate(source / "src").circles() == KNOWN.get(source.name, set())


def test_a_circle_by_way_of_a_parent_is_seen(tmp_path):
    files = {
        "lib.rs": "mod a; mod b; mod c; pub use b::{inner::{B as Renamed}, Other};",
        "a.rs": "use super::Renamed; // c does not count: crate::c::C",
        "b/mod.rs": "pub mod inner; use super::Nothing;",
        "b/inner.rs": "use super::Other; fn f() { crate::a::f() }",
        "c.rs": "use crate::a::A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n",
    }
    for name, code in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    assert Crate(tmp_path).circles() == {("a", "b/inner")}
