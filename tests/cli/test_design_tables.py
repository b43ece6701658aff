"""`durasim designs --check`: accepted and refused tables of docs/designs/, tested on a small checkout."""

import pytest

import durasim as ds
from durasim.documents.mechanisms import check_document, verdict_lines
from tools import design_tables

LOCK = """\
version = 3

[[package]]
name = "small-thing"
version = "0.1.0"
"""
MANIFEST = """\
[package]
name = "small-thing"
version = "0.1.0"
edition = "2021"
"""
LIBRARY = """\
pub mod thing;
"""
THING = """\
pub struct Thing;

impl Thing {
    pub fn twice(&self, n: u32) -> u32 {
        2 * n
    }
}

impl std::fmt::Debug for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "thing")
    }
}

pub(crate) fn alone() {}

#[cfg(test)]
mod tests {
    #[test]
    fn it_doubles() {
        super::alone();
        assert_eq!(super::Thing.twice(2), 4);
    }

    #[test]
    fn it_doubles_wrongly() {
        assert_eq!(super::Thing.twice(2), 5);
    }

    #[test]
    #[ignore]
    fn it_is_left_out() {}

    #[test]
    #[should_panic]
    fn it_panics() {
        panic!("as it should");
    }
}
"""
WHOLE = """\
#[test]
fn the_whole_doubles() {
    assert_eq!(small_thing::thing::Thing.twice(3), 6);
}
"""
PYTHON = """\
import pytest


def helper():
    pass


@pytest.mark.parametrize("n", [1, 2])
def test_one_fails(n):
    assert n == 1


@pytest.mark.skip
def test_skipped():
    pass


class TestThings:
    def test_in_a_class(self):
        pass
"""
HEADER = "inline int doubled(int n) { return 2 * n; }\n"
RS, PY = "crates/small/src/thing.rs", "tests/test_small.py"
FUNCTION = f"`{RS}::Thing::twice`"
TEST = f"`{RS}::it_doubles`"


@pytest.fixture
def root(tmp_path):
    files = {
        # A workspace, so that cargo finds the package from the root.
        "Cargo.toml": '[workspace]\nmembers = ["crates/small"]\nresolver = "2"\n',
        "Cargo.lock": LOCK,
        "crates/small/Cargo.toml": MANIFEST,
        "crates/small/src/lib.rs": LIBRARY,
        RS: THING,
        "crates/small/tests/whole.rs": WHOLE,
        "guest/small.h": HEADER,
        PY: PYTHON,
        "tests/helpers.py": PYTHON,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


HEAD = ("| paper | mechanism | function | test |", "| --- | --- | --- | --- |")


def _page(root, *rows, design="hercules", head=HEAD):
    path = root / f"docs/designs/{design}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    other = ("# A page", "", "| other | table |", "| --- | --- |", "| a | b |", "")
    path.write_text("\n".join([*other, *head, *rows]) + "\n")


def _problems(root, function=FUNCTION, test=TEST):
    _page(root, f"| 4.1 | a mechanism | {function} | {test} |")
    rows = design_tables.read_tables(root)
    design_tables.check_names(root, rows)
    assert len(rows) == 1
    return rows[0].problems


def test_a_row_is_read(root):
    _page(root, "| 4.1, Listing 2 | bits `a\\|b` | `x::f` and `y::g` | `z::t` |", "", "| not | of | the | table |")
    (row,) = design_tables.read_tables(root)
    assert (row.design, row.file, row.line) == ("hercules", "docs/designs/hercules.md", 9)
    assert (row.paper, row.functions, row.tests) == ("4.1, Listing 2", ("x::f", "y::g"), ("z::t",))


@pytest.mark.parametrize(
    "function",
    [FUNCTION, f"`{RS}::alone`", f"`{RS}::Thing::fmt`, `{RS}::twice`", "`guest/small.h::doubled`", f"`{PY}::helper`"],
)
def test_functions_that_are_there(root, function):
    assert _problems(root, function) == []


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("", "it has no function"),
        ("twice", "it has no function"),
        ("`twice`", "twice: is not path::name"),
        ("`crates/small/src/other.rs::twice`", "crates/small/src/other.rs::twice: the file is missing"),
        (f"`{RS}::thrice`", f"{RS}::thrice: the function is missing"),
        (f"`{RS}::twic`", f"{RS}::twic: the function is missing"),
        (f"`{RS}::Other::twice`", f"{RS}::Other::twice: the function is missing"),
        (f"`{RS}::Thing::alone`", f"{RS}::Thing::alone: the function is missing"),
        ("`guest/small.h::halved`", "guest/small.h::halved: the function is missing"),
        ("`Cargo.toml::members`", "Cargo.toml::members: functions are not supported in this type of file"),
    ],
)
def test_functions_that_are_not(root, function, said):
    assert _problems(root, function) == [said]


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("by hand", "it has no test"),
        (f"`{RS}::alone`", f"{RS}::alone: the test is missing"),
        (f"`{PY}::helper`", f"{PY}::helper: the test is missing"),
        ("`tests/helpers.py::test_skipped`", "tests/helpers.py::test_skipped: the test is missing"),
        ("`guest/small.h::doubled`", "guest/small.h::doubled: tests are not supported in this type of file"),
    ],
)
def test_tests_that_are_not(root, test, said):
    assert _problems(root, test=test) == [said]


def test_a_row_of_another_width_is_refused(root):
    _page(root, "| 4.1 | a mechanism | `x::f` |")
    rows = design_tables.read_tables(root)
    design_tables.check_names(root, rows)
    assert rows[0].problems == ["3 cells instead of 4"]


def test_pages_that_are_refused(root):
    _page(root, f"| 4 | m | {FUNCTION} | {TEST} |")
    with pytest.raises(ds.ConfigError, match=r"docs/designs/tc\.md is missing \(pages: hercules\)"):
        design_tables.read_tables(root, ["tc"])
    with pytest.raises(ds.ConfigError, match="did you mean 'hercules'"):
        design_tables.read_tables(root, ["hercles"])
    _page(root, design="opt", head=())
    with pytest.raises(ds.ConfigError, match=r"docs/designs/opt\.md: has no table"):
        design_tables.read_tables(root)
    _page(root, f"| 4 | m | {FUNCTION} | {TEST} |", design="hercles")
    with pytest.raises(ds.ConfigError, match=r"docs/designs/hercles\.md: unknown name"):
        design_tables.read_tables(root)


def test_every_test_is_run(root, conforms, monkeypatch):
    monkeypatch.setenv("CARGO_TARGET_DIR", str(root / "target"))
    tests = {
        f"{RS}::it_doubles": None,
        f"{RS}::it_panics": None,
        f"{RS}::it_doubles_wrongly": "is FAILED",
        f"{RS}::it_is_left_out": "is ignored",
        "crates/small/tests/whole.rs::the_whole_doubles": None,
        f"{PY}::test_one_fails[1]": None,
        f"{PY}::test_one_fails": "is failed",
        f"{PY}::test_one_fails[3]": "is not run",
        f"{PY}::test_skipped": "is skipped",
        f"{PY}::TestThings::test_in_a_class": None,
    }
    _page(root, *(f"| 4 | {n} | {FUNCTION} | `{test}` |" for n, test in enumerate(tests)))
    rows, said = design_tables.read_tables(root), []
    design_tables.check(root, rows, said.append)
    expected = [[] if end is None else [f"{test}: {end}"] for test, end in tests.items()]
    assert [row.problems for row in rows] == expected
    assert said == ["cargo test -p small-thing --lib", "cargo test -p small-thing --test whole", "pytest"]
    conforms("designs-check", check_document(rows))
    lines = verdict_lines(rows)
    assert lines[0] == f"docs/designs/hercules.md:11: 2: {RS}::it_doubles_wrongly: is FAILED"
    assert lines[-1] == "10 mechanisms on 1 pages, 10 tests: 5 are refused"


def test_what_does_not_build_is_refused(root, monkeypatch):
    monkeypatch.setenv("CARGO_TARGET_DIR", str(root / "target"))
    (root / RS).write_text(THING.replace("2 * n", "2 * m"))
    _page(root, f"| 4 | m | {FUNCTION} | {TEST} |")
    rows = design_tables.read_tables(root)
    design_tables.check(root, rows)
    assert rows[0].problems[0].startswith(f"{RS}::it_doubles: is not built (error")


def test_the_command_refuses_what_has_no_page(refused):
    refused(["designs", "--check", "opt"], 2, "docs/designs/opt.md")
    refused(["designs", "--check", "hercles"], 2, "did you mean 'hercules'")
    refused(["designs", "hercles"], 2, "did you mean 'hercules'")
