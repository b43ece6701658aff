"""The site of the documents: its sources, its navigation, its diagrams. `tests/long` builds it."""

import importlib.util
import re
import tomllib
from collections import Counter
from functools import cache
from importlib.metadata import version

import pytest

import document_blocks
import durasim
from document_blocks import ROOT, tokens_of
from site_pages import Page, expected, is_remote, of_css
from tools import build_site

DIAGRAM_PAGES = [*sorted(ROOT.glob("docs/designs/*.md")), ROOT / "docs/software-logging.md"]
# The statements of mermaid that diagrams here consist of: participants, messages, notes, and blocks that end.
PARTICIPANT = re.compile(r"participant (\w+) as [^;#]+")
MESSAGE = re.compile(r"(\w+)--?>>(\w+): [^;#]+")
NOTE = re.compile(r"Note over (\w+)(?:,(\w+))?: [^;#]+")
BLOCK = re.compile(r"(?:opt|alt) [^;#]+")


def _name(page):
    return page.relative_to(ROOT).as_posix()


def _entries(nav):
    for entry in nav:
        for value in entry.values():
            yield from _entries(value) if isinstance(value, list) else [value]


def test_each_page_is_in_the_navigation_once():
    counts = Counter(_entries(build_site.navigation()))
    pages = {_name(path) for path in build_site.sources() if path.suffix == ".md"} | set(build_site.GENERATED)
    assert set(counts) == pages
    assert set(counts.values()) == {1}


def test_every_page_of_the_repository_and_what_it_links_to_is_gathered():
    gathered = build_site.sources()
    assert set(document_blocks.pages()) <= gathered
    assert ROOT / "machines/tc-dac17.toml" in gathered
    assert ROOT / "docs/images/overview.svg" in gathered
    assert ROOT / "CITATION.cff" in gathered
    assert set(ROOT.glob("docs/results/*.csv")) <= gathered


def test_the_reference_has_every_option_key_and_function():
    commands, configuration = build_site.commands(), build_site.configuration()
    for option in ("--design NAME", "--points all|exhaustive|N", "--elf PROG", "--wide"):
        assert f"`{option}`" in commands, option
    for key in ("llc.size_bytes", "core.fences", "design.tc.commit"):
        assert key in configuration, key
    shown = set(re.findall(r"^\| `([\w.]+)` \|", configuration, re.MULTILINE))
    parameters = {of["name"] for of in durasim.describe_machine("hercules-tecs23")["parameters"]}
    assert parameters <= shown, sorted(parameters - shown)[:9]
    assert all(f"::: durasim.{name}\n" in f"{build_site.python_api()}\n" for name in durasim.__all__ if name[0] != "_")


@cache
def _allowed_values():
    schema = durasim.machine_schema()
    return {key: allowed for key, allowed, _, _ in build_site.configuration_rows(schema, schema["$defs"])}


def test_the_reference_has_the_ranges_that_the_program_accepts():
    ranges = {key: found for key, allowed in _allowed_values().items()
              if (found := re.fullmatch(r"integer(?: or null)? (\d+) to (\d+)", allowed))}  # fmt: skip
    assert len(ranges) > 100
    assert ranges["cores"].groups() == ("1", "32")
    for key, (low, high) in ((key, map(int, found.groups())) for key, found in ranges.items()):
        machines = [name for name in build_site.PROBED_MACHINES if build_site.refusal(key, high + 1, name)]
        assert machines, key
        for value in (low, high):
            assert "is not between" not in build_site.refusal(key, value, machines[0]), f"{key}={value}"
        if low:
            assert build_site.refusal(key, low - 1, machines[0]), key


def test_the_reference_has_no_word_that_is_refused():
    assert _allowed_values()["interconnect.inclusion"] == "`inclusive`, `non-inclusive`"
    for key, allowed in _allowed_values().items():
        for word in re.findall(r"`([\w-]+)`", allowed):
            assert build_site.NOT_SUPPORTED not in build_site.refusal(key, word), f"{key}={word}"


def _diagrams(page):
    return [token.content for token in tokens_of(page) if token.type == "fence" and token.info == "mermaid"]


def _check_diagram(text):
    first, *lines = text.splitlines()
    assert first == "sequenceDiagram"
    names, open_blocks = set(), []
    for line in map(str.strip, lines):
        if found := PARTICIPANT.fullmatch(line):
            names.add(found[1])
        elif found := MESSAGE.fullmatch(line) or NOTE.fullmatch(line):
            assert {name for name in found.groups() if name} <= names, line
        elif BLOCK.fullmatch(line):
            open_blocks.append(line)
        elif re.fullmatch(r"else [^;#]+", line):
            assert open_blocks[-1].startswith("alt "), line
        else:
            assert line == "end", line
            open_blocks.pop()
    assert open_blocks == []


@pytest.mark.parametrize("page", DIAGRAM_PAGES, ids=_name)
def test_the_page_of_a_design_has_one_diagram(page):
    diagrams = _diagrams(page)
    assert len(diagrams) == 1
    _check_diagram(diagrams[0])


@pytest.mark.parametrize(
    "line", ["A->>C: a name that is not there", "A->>B: two; statements", "end", "opt never ends", "A=>B: no arrow"]
)
def test_a_wrong_diagram_is_noticed(line):
    diagram = "sequenceDiagram\n    participant A as One\n    participant B as Two\n"
    _check_diagram(f"{diagram}    A->>B: right\n")
    with pytest.raises((AssertionError, IndexError)):
        _check_diagram(f"{diagram}    {line}\n")


def test_what_a_page_loads_is_found():
    page = Page(
        '<link rel="preconnect" href="https://one"><script src="//two"></script><a href="https://not"></a>'
        '<article><p style="background: url(http://three)"><img src="four.svg"></p></article>'
    )
    assert [load for load in page.loads if is_remote(load)] == ["https://one", "//two", "http://three"]
    assert page.elements["img"] == 1
    assert of_css("@import 'http://five'; a { b: url(\"six\") }") == ["http://five", "six"]
    assert expected(ROOT / "README.md")["img"] == 1


def test_the_citation_names_this_version():
    stated = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"\nversion: {stated}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{stated}}}" in (ROOT / "docs/citing.md").read_text()


def test_packages_of_all_lock_files_agree():
    locks = [
        dict(line.lower().split("==") for line in (ROOT / name).read_text().split())
        for name in (
            "requirements.lock",
            "requirements-docs.lock",
            "requirements-browser.lock",
            "requirements-page.lock",
        )
    ]
    assert all(locks[0][name] == of[name] for of in locks[1:] for name in locks[0].keys() & of.keys())
    assert locks[2].keys() == {"playwright", "greenlet"}
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    assert all(locks[1][name] == pinned for name, pinned in (one.split("==") for one in wanted))


def test_sources_of_the_site_are_staged(tmp_path, monkeypatch):
    if importlib.util.find_spec("mermaidx") is None:
        pytest.skip("the packages of the site are not installed: `make docs` installs them")
    monkeypatch.setattr(build_site, "SOURCE", tmp_path / "source")
    monkeypatch.setattr(build_site, "CONFIGURATION", tmp_path / "mkdocs.yml")
    build_site.stage()
    for path in build_site.sources():
        assert (tmp_path / "source" / path.relative_to(ROOT)).read_bytes() == path.read_bytes()
    script = (tmp_path / "source/assets/mermaid.min.js").read_text(encoding="utf-8")
    assert 'version:"11.16.0"' in script
    stated = (ROOT / "docs/dependencies.md").read_text()
    assert "`mermaid.min.js` 11.16.0" in stated
    assert version("mermaidx") == "0.10.1"


def test_an_unknown_link_is_refused(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n[there](absent.toml)\n")
    monkeypatch.setattr(build_site, "ROOT", tmp_path)
    monkeypatch.setattr(build_site, "ALSO", ())
    with pytest.raises(SystemExit, match=r"absent\.toml is no file"):
        build_site.sources()
