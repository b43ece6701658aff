"""What pages name is there: links and their headings, files, make targets, commands with their options, functions."""

import re
import shlex
import subprocess
from functools import cache
from xml.etree import ElementTree

import pytest
import typer

import document_blocks
from document_blocks import ROOT, blocks_of, tokens_of
from durasim.cli import app

PAGES = [*document_blocks.pages(), ROOT / "tests/timing/README.md"]
FILE = re.compile(r"[\w.{}-]+(?:/[\w.-]+)+\.(?:rs|py|toml|h|cpp|c|json|csv|md)|[\w.-]+(?:/[\w.-]+)*/[\w.-]+/")
# Made by commands, chosen by the reader, or paths of a paper's or the guest's.
NOT_FILES = re.compile(r"^(build|target|lib|src/mem)/|NAME|TARGET")
REFUSED = 2
FUNCTION = re.compile(r"(?:[A-Z]\w*)::([a-z_]\w*)")


def _name(page):
    return page.relative_to(ROOT).as_posix()


def _inline(page, kind):
    for token in tokens_of(page):
        for child in token.children or ():
            if child.type == kind:
                yield child


def _code(page):
    return [token.content for token in _inline(page, "code_inline")]


@cache
def _headings(page):
    """The anchors of a page, as GitHub makes them."""
    tokens = tokens_of(page)
    texts = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", text).lower()).replace(" ", "-") for text in texts}


@cache
def _files():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return tuple(f"/{name}" for name in listed.stdout.splitlines())


@cache
def _words_of_sources():
    sources = sorted(ROOT.glob("crates/**/*.rs"))
    return {word for path in sources for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}


def test_much_is_named():
    """The patterns below find what they look for."""
    code = [text for page in PAGES for text in _code(page)]
    assert sum(FILE.fullmatch(text) is not None for text in code) > 100
    assert sum(FUNCTION.fullmatch(text) is not None for text in code) > 30
    assert sum(words[:1] == ["durasim"] for page in PAGES for words in _commands(page)) > 50


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_pictures_are_there(page):
    for picture in _inline(page, "image"):
        assert (page.parent / str(picture.attrs["src"])).is_file(), f"{picture.attrs['src']} is not there"
        assert picture.content, "a picture has no text for those who do not see it"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page):
    for link in _inline(page, "link_open"):
        target, _, heading = str(link.attrs["href"]).partition("#")
        if target.startswith(("http:", "https:")):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{target} is not there"
        if heading:
            assert heading in _headings(path), f"{target} has no heading #{heading}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_images_are_there_and_say_what_they_show(page):
    for image in _inline(page, "image"):
        path = (page.parent / str(image.attrs["src"])).resolve()
        assert path.exists(), f"{image.attrs['src']} is not there"
        assert image.content, f"{image.attrs['src']} has no text for those who do not see it"


@pytest.mark.parametrize("image", sorted(ROOT.glob("docs/images/*.svg")), ids=lambda path: path.name)
def test_a_drawing_is_read_in_light_and_dark_mode(image):
    root = ElementTree.fromstring(image.read_text(encoding="utf-8"))  # noqa: S314 - a file of this repository
    space = {"svg": "http://www.w3.org/2000/svg"}
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert root.find("svg:title", space) is not None
    assert "prefers-color-scheme: dark" in root.findtext("svg:style", namespaces=space)
    for text in root.iterfind("svg:text", space):
        assert 0 < float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) < height
    # Colours come from classes, so that the dark ones replace all.
    assert not {name for of in root.iter() for name in of.attrib} & {"fill", "stroke", "style"}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_files_that_are_named_are_there(page):
    named = [text for text in _code(page) if FILE.fullmatch(text) and not NOT_FILES.search(text)]
    for text in named:
        is_there = any(file.endswith(f"/{text}") or (text.endswith("/") and f"/{text}" in file) for file in _files())
        assert is_there, f"`{text}` is not there"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_functions_that_are_named_are_there(page):
    for text in _code(page):
        if found := FUNCTION.fullmatch(text):
            assert found[1] in _words_of_sources(), f"`{text}` is not there"


def _commands(page):
    """All commands of code spans and of blocks, also of blocks that are not run, but for those that are refused."""
    texts = _code(page)
    for block in blocks_of(page):
        if block.language in ("sh", "console"):
            # What is run and has to be refused may name an option that is not there.
            texts += [
                command.text.replace("\\\n", " ")
                for command in document_blocks.commands_of(block)
                if not (block.is_run and command.exit_code == REFUSED)
            ]
    for text in texts:
        try:
            yield shlex.split(text, comments=True)
        except ValueError:
            continue


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_make_targets_are_there(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for words in _commands(page):
        if words[:1] == ["make"] and len(words) > 1:
            assert words[1] in targets, f"make {words[1]}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_have_the_options_that_are_named(page):
    commands = typer.main.get_command(app).commands
    for words in _commands(page):
        if words[:1] not in (["durasim"], [".venv/bin/durasim"]) or len(words) < 2 or words[1].startswith("-"):
            continue
        assert words[1] in commands, f"durasim {words[1]}"
        known = {option for of in commands[words[1]].params for option in (*of.opts, *of.secondary_opts)}
        own = words[2 : words.index("--")] if "--" in words else words[2:]
        options = {word.partition("=")[0] for word in own if word.startswith("--")}
        assert options <= known | {"--help"}, f"durasim {words[1]}: {options - known}"
