"""Allowed dependencies between crates and between the wings of the Python package, as in ARCHITECTURE.md.

The absence of an arrow is part of the design.
"""

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest
from test_import_cycles import Crate

ROOT = Path(__file__).resolve().parents[2]

MAY_USE = {
    "types": set(),
    "isa": {"types"},
    "contract": {"types"},
    "cache": {"types", "contract"},
    "memory": {"types", "contract"},
    "core": {"types", "isa", "cache"},
    "kernel": {"types", "isa"},
    "designs": {"types", "contract"},
    "machine": {"types", "isa", "contract", "cache", "memory", "core", "kernel"},
    "crash": {"types", "contract", "machine"},
    "test_plans": {"types", "contract"},
    "random": {"types", "isa", "contract", "memory", "core", "machine", "crash", "test_plans"},
    "debugger": {"types", "contract", "machine", "crash"},
    "trace": {"types", "contract", "machine", "crash"},
    "models": set(),
    "binding": {
        "types",
        "isa",
        "contract",
        "cache",
        "memory",
        "core",
        "kernel",
        "designs",
        "machine",
        "crash",
        "debugger",
        "test_plans",
        "random",
        "trace",
    },
    "py": {"binding"},
    # Tests all crates from outside. It is in no other set, because no shipped crate depends on it.
    "robustness": {
        "types",
        "isa",
        "contract",
        "cache",
        "memory",
        "core",
        "kernel",
        "designs",
        "machine",
        "crash",
        "random",
    },
}

PACKAGE = ROOT / "python" / "durasim"
# Each module or subpackage of the Python package may import those before it in this list.
WINGS = (
    "own_core",
    "_core",
    "errors",
    "output",
    "watch",
    "templates",
    "store",
    "documents",
    "programs",
    "stamp",
    "runs",
    "crashes",
    "local_server",
    "explore",
    "monitor",
    "studies",
    "papers",
    "artifacts",
    "arguments",
    "checkout",
    "api",
    "publication",
    "",
    "cli",
    "__main__",
)


def _imported(file: Path):
    """The names of the package's wings that a file imports, each once, and "" for the package itself."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first == "durasim":
                yield rest[0] if rest and rest[0] in WINGS else ""


def _python_files():
    """The files of the package, each with its wing."""
    for file in sorted(PACKAGE.rglob("*.py")):
        inside = file.relative_to(PACKAGE).parts
        wing = inside[0].removesuffix(".py")
        yield "" if wing == "__init__" else wing, file


def test_every_file_of_the_python_package_is_in_a_declared_wing():
    assert {wing for wing, _ in _python_files()} | {"_core"} == set(WINGS)


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_imports_only_what_is_before_it(wing):
    allowed = WINGS[: WINGS.index(wing)]
    upwards = {
        f"{file.relative_to(PACKAGE)} imports {name or 'the package'}"
        for of, file in _python_files()
        if of == wing
        for name in _imported(file)
        if name != wing and name not in allowed
    }
    assert not upwards


def test_the_architecture_lists_the_wings():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `python/durasim` \| ([^|]*) \|", page, re.MULTILINE)
    folders = [wing for wing in WINGS if (PACKAGE / wing).is_dir() and wing]
    assert [name for name in re.findall(r"`(\w+)/`", row) if name in folders] == folders


def test_tools_and_experiments_are_not_imported_by_the_package():
    for _, file in _python_files():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(?:from|import) (?:tools|experiments|tests)\b", text, re.MULTILINE), file


# Modules of crates/machine, lowest first: a module imports from its own layer and from those before it.
MACHINE_LAYERS = [
    "setup",
    "statistics",
    "parts",
    "system",
    "system/inspection",
    "system/work",
    "system/requests",
    "machine",
    "functional",
    "runs",
]


def _folder(package):
    """The folder of a package in `crates`."""
    return package.removeprefix("durasim-").replace("-", "_")


@pytest.fixture(scope="module")
def packages():
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {_folder(package["name"]): package for package in json.loads(done.stdout)["packages"]}


def test_every_crate_is_listed(packages):
    assert packages.keys() == MAY_USE.keys()


@pytest.mark.parametrize("crate", MAY_USE)
def test_a_crate_uses_only_allowed_dependencies(packages, crate):
    # Dependencies of tests are unrestricted: tests may combine crates that the program keeps separate.
    dependencies = {d["name"] for d in packages[crate]["dependencies"] if d["kind"] != "dev"}
    used = {_folder(name) for name in dependencies if name.startswith("durasim-")}
    assert used <= MAY_USE[crate]


def test_the_table_of_the_architecture_says_the_same():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    stated = {}
    for room, uses in re.findall(r"^\| `crates/(\w+)` \|[^|]*\| ([^|]*) \|$", page, re.MULTILINE):
        names = set(re.findall(r"`(\w+)`", uses))
        if uses.startswith("all above"):
            names = set(stated) - names
        elif uses.startswith("all except"):
            names = MAY_USE.keys() - names - {room}
        stated[room] = names
    assert stated == MAY_USE


def test_only_the_binding_knows_python(packages):
    knowing = {name for name, p in packages.items() for d in p["dependencies"] if d["name"].startswith("pyo3")}
    assert knowing == {"binding", "py"}


def test_only_models_are_checked_for_all_states(packages):
    knowing = {name for name, p in packages.items() for d in p["dependencies"] if d["name"] == "stateright"}
    assert knowing == {"models"}


def test_every_fuzz_target_has_a_wrapper_for_cargo_fuzz_and_a_corpus():
    table = (ROOT / "crates/robustness/src/lib.rs").read_text(encoding="utf-8")
    canaries = table.index("pub const CANARIES")
    targets = set(re.findall(r'name: "(\w+)"', table[:canaries]))
    assert len(targets) >= 8
    assert {path.stem for path in (ROOT / "fuzz/fuzz_targets").glob("*.rs")} == targets
    assert {name for name in targets if any((ROOT / "crates/robustness/corpus" / name).iterdir())} == targets


def test_the_corpus_stays_small():
    assert (
        sum(path.stat().st_size for path in (ROOT / "crates/robustness/corpus").rglob("*") if path.is_file()) < 450_000
    )


@pytest.mark.parametrize("main", sorted(ROOT.glob("crates/*/tests/main.rs")), ids=lambda main: main.parts[-3])
def test_a_program_of_tests_has_all_files_beside_it(main: Path):
    """With `autotests` off Cargo does not search for tests: a file that is not listed would not be compiled."""
    named = set(re.findall(r"^mod (\w+);$", main.read_text(encoding="utf-8"), re.MULTILINE))
    files = {path.stem for path in main.parent.glob("*.rs")} - {"main"}
    assert named == files | {path.parent.name for path in main.parent.glob("*/mod.rs")}


def _layer(module, layers):
    """The layer of a module: the longest name that it is in; None for the root of the crate."""
    inside = [layer for layer in layers if module[: layer.count("/") + 1] == tuple(layer.split("/"))]
    return max(inside, key=len, default=None)


def _imports_upwards(source, layers):
    """Imports from higher layers, and imports by way of what lib.rs re-exports, which would hide them."""
    crate = Crate(source)
    for module in sorted(crate.paths):
        layer = _layer(module, layers)
        if layer is None:
            if module:
                yield f"{'/'.join(module)} is in no layer"
            continue
        for path in sorted(crate.paths[module]):
            first, *rest = path.split("::")
            if first == "crate" and (rest[0],) not in crate.paths:
                yield f"{'/'.join(module)} imports {path} from lib.rs"
            found = crate.found(module, path)
            other = _layer(found, layers) if found else None
            # A module declares its children and may name them; only the root of a layer does so.
            declares = found and found[: len(module)] == module
            if other and layers.index(other) > layers.index(layer) and not declares:
                yield f"{'/'.join(module)} ({layer}) imports {path} ({other})"


def test_modules_of_the_machine_import_downwards_only():
    assert list(_imports_upwards(ROOT / "crates/machine/src", MACHINE_LAYERS)) == []


def test_methods_of_the_system_call_downwards_only():
    """Methods need no import: a call from `work` to a request would be upwards too."""
    source = ROOT / "crates/machine/src"
    folders = [layer for layer in MACHINE_LAYERS if layer.startswith("system")]
    definitions, calls = {}, []
    for path in sorted((source / "system").rglob("*.rs")):
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        code = "".join(re.findall(r"^impl System \{(.*?)^\}", code, re.S | re.M))
        layer = _layer(path.relative_to(source).with_suffix("").parts, folders)
        definitions.update(dict.fromkeys(re.findall(r"^    .*?\bfn (\w+)", code, re.M), layer))
        calls += [(path.name, layer, name) for name in re.findall(r"\b(?:self|s|system)\.(\w+)\(", code)]
    upwards = [
        (name, called)
        for name, layer, called in calls
        if folders.index(definitions.get(called, "system")) > folders.index(layer)
    ]
    assert len(calls) > 500 and upwards == []


def test_imports_upwards_are_seen(tmp_path):
    files = {
        "lib.rs": "mod low; mod high; pub use high::High;",
        "low.rs": "use crate::High;\n#[cfg(test)]\nmod tests {\n    use crate::high::Test;\n}\n",
        "high/mod.rs": "mod inner; use crate::low::Low; use inner::Inner;",
        "high/inner.rs": "use super::High;",
        "other.rs": "",
    }
    for name, code in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    assert list(_imports_upwards(tmp_path, ["low", "high"])) == [
        "low imports crate::High from lib.rs",
        "low (low) imports crate::High (high)",
        "other is in no layer",
    ]
