"""Functions stay short enough to be read at once. A longer one is listed here with its reason."""

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = {".rs", ".py", ".pyi", ".cpp", ".h", ".c"}
FUNCTION_LINES_MAX = 70
LONG_FUNCTIONS_MAX = 7

# File, name, and the reason for not dividing it.
LONG_FUNCTIONS = {
    ("crates/kernel/src/syscalls/mod.rs", "dispatch"): "A table: one arm for each system call.",
    ("crates/isa/src/execute.rs", "execute"): "A table: one arm for each instruction that programs execute often.",
    ("crates/isa/src/execute.rs", "execute_rest"): "A table: one arm for each other instruction.",
    ("crates/core/src/core/step.rs", "step"): "Simulated instructions pass through it, and calls within it cost time.",
    ("crates/models/src/hercules/step.rs", "run"): "A table: one arm for each action of the model.",
    ("crates/models/src/hercules/properties.rs", "all"): "A list of the properties of the model.",
    ("crates/models/src/tc/properties.rs", "all"): "A list of the properties of the model.",
}

RUST_FUNCTION = re.compile(
    r'^( *)(?:pub(?:\([^)]*\))? )?(?:(?:default|const|async|unsafe|extern(?: "\w+")?) )*fn (\w+)'
)


def _sources():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [line for line in listed.splitlines() if Path(line).suffix in SUFFIXES and (ROOT / line).exists()]
    assert {Path(path).suffix for path in paths} >= {".rs", ".py", ".cpp", ".h"}
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}


def _rust_functions(text):
    """Names and lengths. The formatter aligns the closing brace of a function with the start of its first line."""
    lines = text.splitlines()
    for first, line in enumerate(lines):
        if begin := RUST_FUNCTION.match(line):
            indent, name = begin.groups()
            for last in range(first, len(lines)):
                # A declaration without a body, a body on one line, or the closing brace.
                if lines[last].startswith(indent + "}") or re.match(rf"{indent}\S.*[;}}]$", lines[last]):
                    yield name, last - first + 1
                    break
            else:
                raise AssertionError(f"{name} has no end")


def _python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.end_lineno - node.lineno + 1


def _long_functions(sources):
    functions = {".rs": _rust_functions, ".py": _python_functions}
    return [
        (path, name)
        for path, text in sources.items()
        if (listed := functions.get(Path(path).suffix))
        for name, lines in listed(text)
        if lines > FUNCTION_LINES_MAX
    ]


def test_functions_stay_readable_except_a_few_with_a_reason():
    assert sorted(_long_functions(_sources())) == sorted(LONG_FUNCTIONS)
    assert len(LONG_FUNCTIONS) <= LONG_FUNCTIONS_MAX
    assert all(re.fullmatch(r"[A-Z][^.]+\.", reason) for reason in LONG_FUNCTIONS.values())


def test_lengths_are_counted_to_the_closing_brace():
    rust = [
        "impl Thing {",
        "    pub(super) const fn long(",
        "        &self,",
        "    ) -> u32 {",
        *["        {", "        }"] * 34,
        "    }",
        "    fn declared(&self);",
        "    fn short() {}",
        "}",
    ]
    assert list(_rust_functions("\n".join(rust))) == [("long", 72), ("declared", 1), ("short", 1)]
    python = ["def long():", *["    pass"] * 70, "def short():", *["    pass"] * 69]
    sources = {"a.rs": "\n".join(rust), "a.py": "\n".join(python), "a.h": "void f();"}
    assert _long_functions(sources) == [("a.rs", "long"), ("a.py", "long")]
