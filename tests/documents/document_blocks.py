"""Finds the code blocks of a Markdown page, runs them in order in one folder, and compares their outputs.

A fenced block in `sh`, `console` or `python` is run, unless changed by an HTML comment directly before it:

    <!-- not run: REASON -->   the block is not run
    <!-- long -->              only `make test-all` runs it
    <!-- output -->            it is the output of the block before it
    <!-- file NAME -->         it is written to this file, for the blocks after it

Commands of a `console` block start with `$ ` and are followed by their outputs. `...` matches any text in a line, and
as a whole line any lines. A command must end with exit code 0, or with that of a comment: `# exit code 1`.
"""

from __future__ import annotations

import difflib
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 600
RUN_LANGUAGES = ("sh", "console", "python")
# A text from which viewers of the page draw a diagram; it says nothing that could be run.
DIAGRAM = "mermaid"
ANNOTATION = re.compile(r"<!-- (not run|long|output|file)(?::? (.*))? -->")
NEEDS_TEXT = {"not run": True, "long": False, "output": False, "file": True}
EXIT_CODE = re.compile(r"#.*\bexit code (\d+)\s*$")
NOT_LINKED = {".git", "build", "target", "__pycache__"}


class DocumentError(AssertionError):
    """A block violates the rules."""


@dataclass(frozen=True)
class Block:
    """A code block of a page.

    Attributes:
        place: The page and the line of its first line of code, for messages.
        language: The language after the fence; empty for an indented block.
        text: The code.
        annotations: Annotations of the comment before it, by name.
    """

    place: str
    language: str
    text: str
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        return self.language in RUN_LANGUAGES and "not run" not in self.annotations

    @property
    def is_long(self) -> bool:
        return "long" in self.annotations

    def check(self) -> None:
        """Checks that the block is run, is part of one that is run, or has a reason."""
        for name, text in self.annotations.items():
            if bool(text) != NEEDS_TEXT[name]:
                raise DocumentError(f"{self.place}: the annotation '{name}' is incomplete or says too much")
        if not self.is_run and self.language != DIAGRAM and not self.annotations.keys() & {"not run", "output", "file"}:
            kind = f"in '{self.language}'" if self.language else "without a language"
            raise DocumentError(f"{self.place}: a block {kind} is not run and does not say why")


@dataclass
class Command:
    """A command with its expected exit code and expected output (None: any)."""

    text: str
    exit_code: int
    output: list[str] | None


def pages() -> list[Path]:
    """Returns all pages of the documentation."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@cache
def tokens_of(page: Path) -> list[Token]:
    """Parses a page."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def blocks_of(page: Path) -> list[Block]:
    """Returns the code blocks of a page, in order."""
    name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name
    blocks, annotations = [], {}
    for token in tokens_of(page):
        if token.type == "html_block":
            annotations = {found[1]: found[2] or "" for found in ANNOTATION.finditer(token.content)}
            continue
        if token.type in ("fence", "code_block"):
            place = f"{name}:{(token.map or [0])[0] + 1}"
            blocks.append(Block(place, token.info.strip(), token.content, annotations))
        annotations = {}
    return blocks


def run_page(page: Path, folder: Path, *, with_long: bool) -> list[Block]:
    """Runs the blocks of a page in `folder`, with or without its long blocks; returns those that it ran."""
    link_checkout(folder)
    ran: list[Block] = []
    is_skipped, printed = False, None
    for block in blocks_of(page):
        block.check()
        if "not run" in block.annotations:
            continue
        if "output" in block.annotations:
            if not is_skipped:
                if printed is None:
                    raise DocumentError(f"{block.place}: there is no output to compare with")
                compare(block.place, block.text.splitlines(), printed)
            continue
        if "file" in block.annotations:
            (folder / block.annotations["file"]).write_text(block.text, encoding="utf-8")
            continue
        is_skipped = block.is_long and not with_long
        if not is_skipped:
            printed = run_block(block, folder)
            ran.append(block)
    return ran


def link_checkout(folder: Path) -> None:
    """Fills `folder` with links to all files of the checkout except build results."""
    for path in ROOT.iterdir():
        if path.name not in NOT_LINKED:
            (folder / path.name).symlink_to(path)


def run_block(block: Block, folder: Path) -> list[str]:
    """Runs a block and returns its output."""
    if block.language == "python":
        source = folder / "block.py"
        source.write_text(block.text, encoding="utf-8")
        commands = [Command("python block.py", 0, None)]
    else:
        commands = list(commands_of(block))
    results = run_commands(block.place, [command.text for command in commands], folder)
    for command, (exit_code, printed) in zip(commands, results, strict=True):
        if exit_code != command.exit_code:
            shown = "\n".join(printed)
            raise DocumentError(
                f"{block.place}: exit code {exit_code} instead of {command.exit_code}: {command.text}\n{shown}"
            )
        if command.output is not None:
            compare(f"{block.place}: {command.text}", command.output, printed)
    return [line for _, printed in results for line in printed]


def commands_of(block: Block) -> Iterator[Command]:
    """Returns the commands of a block in `sh` or `console`. A `\\` at the end of a line continues a command."""
    is_console = block.language == "console"
    lines = iter(block.text.splitlines())
    command: Command | None = None
    for line in lines:
        if is_console and not line.startswith("$ "):
            if command is None or command.output is None:
                raise DocumentError(f"{block.place}: a block in 'console' begins with a command, '$ ...'")
            command.output.append(line)
            continue
        text = line.removeprefix("$ ") if is_console else line
        while text.endswith("\\"):
            text = f"{text}\n{next(lines)}"
        if not is_console and (not text.strip() or text.startswith("#")):
            continue
        if command is not None:
            yield command
        expected = EXIT_CODE.search(text)
        command = Command(text, int(expected[1]) if expected else 0, [] if is_console else None)
    if command is not None:
        yield command


def run_commands(place: str, commands: Sequence[str], folder: Path) -> list[tuple[int, list[str]]]:
    """Runs commands in one shell; returns the exit code and the output on both streams of each."""
    end = f"end of command {secrets.token_hex(8)}"
    script = "".join(f'{command}\nprintf "\\n%s %s\\n" "{end}" "$?"\n' for command in commands)
    folders = (str(Path(sys.executable).parent), os.environ["PATH"])
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")}
    # The store of results of a page, which the next test of it does not find.
    environment |= {"XDG_DATA_HOME": str(folder / ".data")}
    environment |= {"PATH": os.pathsep.join(folders), "PWD": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    # Crates that a page compiles, compiled once for all tests.
    environment.setdefault("CARGO_TARGET_DIR", str(ROOT / "build" / "documents-target"))
    shell = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = shell.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate()
        raise DocumentError(f"{place}: it takes more than {TIMEOUT_S} seconds") from None
    parts = re.split(rf"\n{end} (\d+)\n", output)
    if len(parts) != 2 * len(commands) + 1:
        raise DocumentError(f"{place}: the shell ended before the last command:\n{output}")
    return [(int(parts[2 * i + 1]), parts[2 * i].splitlines()) for i in range(len(commands))]


def compare(place: str, expected: Sequence[str], found: Sequence[str]) -> None:
    """Compares an output with that of a page."""
    shown, printed = [line.rstrip() for line in expected], [line.rstrip() for line in found]
    while shown and not shown[-1]:
        shown.pop()
    while printed and not printed[-1]:
        printed.pop()
    if not fits(shown, printed):
        difference = "\n".join(difflib.unified_diff(shown, printed, "the page", "the program", lineterm=""))
        raise DocumentError(f"{place}\nprints something else:\n{difference}")


def fits(expected: Sequence[str], found: Sequence[str]) -> bool:
    """Whether lines match the expected ones, where `...` matches anything."""
    at_expected = at_found = 0
    # Resume point if a line does not match: after the last `...` line, which then matches one more line.
    after_dots, taken_until = -1, 0
    while at_found < len(found):
        if at_expected < len(expected) and expected[at_expected].strip() == "...":
            after_dots, taken_until = at_expected + 1, at_found
            at_expected += 1
        elif at_expected < len(expected) and _line_fits(expected[at_expected], found[at_found]):
            at_expected, at_found = at_expected + 1, at_found + 1
        elif after_dots >= 0:
            taken_until += 1
            at_expected, at_found = after_dots, taken_until
        else:
            return False
    return all(line.strip() == "..." for line in expected[at_expected:])


def _line_fits(expected: str, found: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, expected.split("..."))), found) is not None
