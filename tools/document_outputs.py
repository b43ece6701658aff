"""Updates the outputs of commands in the `console` blocks of documents.

    .venv/bin/python -m tools.document_outputs docs/crash.md ...   # all pages if none is named

A matching output stays unchanged. Otherwise the page gets the new output, cut at the number of lines that it shows
before a last `...`; insert `...` in other places again by hand. Read the difference before you commit it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.documents import document_blocks as blocks

ROOT = Path(__file__).resolve().parents[1]


def rewrite(page: Path) -> None:
    """Runs the blocks of a page and rewrites its outputs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        blocks.link_checkout(folder)
        for block in blocks.blocks_of(page):
            if "file" in block.annotations:
                (folder / block.annotations["file"]).write_text(block.text, encoding="utf-8")
            elif block.is_run and block.language == "console":
                _rewrite_block(page, block, folder)
            elif block.is_run:
                blocks.run_block(block, folder)


def _rewrite_block(page: Path, block: blocks.Block, folder: Path) -> None:
    commands = list(blocks.commands_of(block))
    results = blocks.run_commands(block.place, [command.text for command in commands], folder)
    lines = []
    for command, (exit_code, printed) in zip(commands, results, strict=True):
        if exit_code != command.exit_code:
            print(f"{block.place}: exit code {exit_code}: {command.text}")
        lines.append(f"$ {command.text}")
        lines += shown(command.output or [], [line.rstrip() for line in printed])
    text = "".join(f"{line.rstrip()}\n" for line in lines)
    if text != block.text:
        print(f"{block.place} is rewritten")
        content = page.read_text(encoding="utf-8")
        # Lines of a block in a list have the indent of its fence.
        for indent in ("", "  ", "   "):
            old = "".join(f"{indent}{line}".rstrip() + "\n" for line in block.text.splitlines())
            if content.count(old) == 1:
                new = "".join(f"{indent}{line}".rstrip() + "\n" for line in text.splitlines())
                page.write_text(content.replace(old, new), encoding="utf-8")
                return
        print(f"{block.place}: found in no place or in several: edit it by hand")


def shown(expected: list[str], printed: list[str]) -> list[str]:
    """Returns the part of an output that a page shows."""
    if blocks.fits(expected, printed):
        return expected
    if expected and expected[-1] == "..." and len(printed) >= len(expected):
        return [*printed[: max(len(expected) - 1, 1)], "..."]
    return printed


def main(names: list[str]) -> None:
    """Rewrites the named pages, or all."""
    for page in [Path(name).resolve() for name in names] or blocks.pages():
        rewrite(page)


if __name__ == "__main__":
    main(sys.argv[1:])
