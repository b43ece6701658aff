"""Builds the wheel into dist/, twice from different folders, and refuses wheels that differ.

Its time stamps are those of the newest commit; host folders that the compiler would write into the module are replaced.
The module is linked by zig with the interface of glibc 2.28, which old systems of clusters have, and maturin refuses
the wheel if the module needs a newer one.

With `--profile` the compiler optimises the module with a profile of runs (see tools/profile_guided.py).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools import profile_guided

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SCRATCH = ROOT / "build" / "wheel"
LICENSES = Path("python/durasim/third_party_licenses.txt")
PREBUILT = Path("python/durasim/prebuilt")
PAGE = Path("python/durasim/explore/page")
PLATFORM = "manylinux_2_28"


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def copy_sources(folder: Path) -> None:
    """Copies every file that git tracks or would track, and the generated ones, and preserves links."""
    names = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    folders = (ROOT / PREBUILT, ROOT / PAGE)
    generated = [LICENSES, *(path.relative_to(ROOT) for folder in folders for path in folder.iterdir())]
    shutil.rmtree(folder, ignore_errors=True)
    for name in [*filter(None, names.split("\0")), *map(str, generated)]:
        source, target = ROOT / name, folder / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def build(folder: Path, output: Path, time_stamp_s: str, *flags: str) -> Path:
    """Builds the wheel of the sources in a folder, with further flags for rustc, and returns its path."""
    shutil.rmtree(output, ignore_errors=True)
    # Equal paths relative to the sources in both builds, because the compiler writes them into the module.
    target = folder / "build" / "wheel-target"
    cargo_home = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    environment = os.environ | {
        "SOURCE_DATE_EPOCH": time_stamp_s,
        "CARGO_TARGET_DIR": str(target),
        "RUSTFLAGS": " ".join(
            [f"--remap-path-prefix={folder}=durasim", f"--remap-path-prefix={cargo_home}=cargo", *flags]
        ),
        # The pinned package has zig; its files, and those of the C library that it compiles, are kept for both builds.
        "CARGO_ZIGBUILD_PYTHON_PATH": sys.executable,
        "CARGO_ZIGBUILD_CACHE_DIR": str(SCRATCH / "zigbuild"),
        "ZIG_GLOBAL_CACHE_DIR": str(SCRATCH / "zig-cache"),
    }
    command = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet", "--out", str(output)]
    command += ["--zig", "--compatibility", PLATFORM, "--auditwheel", "check"]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    shutil.rmtree(target)
    (wheel,) = output.glob("*.whl")
    return wheel


def flags_of_profile(time_stamp_s: str) -> list[str]:
    """Returns the flags for rustc that use a new profile."""
    profile_guided.find_profile_tool()
    print("building an instrumented module, and running it", file=sys.stderr)
    raw = SCRATCH / "profile"
    wheel = build(ROOT, SCRATCH / "instrumented", time_stamp_s, f"-Cprofile-generate={raw}")
    merged = profile_guided.profile(profile_guided.Installed.of(wheel, SCRATCH / "instrumented-package"), raw)
    return [f"-Cprofile-use={merged}"]


def main() -> None:
    """Builds, compares and prints the path of the wheel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true", help="optimise the module with a profile of runs")
    is_guided = parser.parse_args().profile
    if not (ROOT / PAGE / "page.js").is_file():
        sys.exit("tools/wheel.py: the page of `durasim explore` is not built: run `make page`")
    print("compiling the guest programs", file=sys.stderr)
    for tool in ("tools.prebuilt", "tools.third_party_licenses"):
        subprocess.run([sys.executable, "-m", tool], cwd=ROOT, check=True)
    copy_sources(SCRATCH / "copy")
    print("building the wheel twice (some minutes)", file=sys.stderr)
    newest = _git("log", "-1", "--format=%ct").strip()
    flags = flags_of_profile(newest) if is_guided else []
    # Link-time optimisation keeps one core busy for most of a build: both builds run at the same time.
    with ThreadPoolExecutor(2) as pool:
        builds = [
            pool.submit(build, folder, SCRATCH / name, newest, *flags)
            for folder, name in ((ROOT, "first"), (SCRATCH / "copy", "second"))
        ]
        first, second = (of.result() for of in builds)
    if first.read_bytes() != second.read_bytes():
        sys.exit(f"two builds of the same sources differ: {first} and {second}")
    if is_guided:
        installed = profile_guided.Installed.of
        plain = installed(build(ROOT, SCRATCH / "plain", newest), SCRATCH / "plain-package")
        print(profile_guided.compare(plain, installed(first, SCRATCH / "guided-package")))
    DIST.mkdir(exist_ok=True)
    # One of another version or platform would be a second one.
    for old in DIST.glob("durasim-*.whl"):
        old.unlink()
    shutil.copy2(first, DIST / first.name)
    print(f"{(DIST / first.name).relative_to(ROOT)}: {first.stat().st_size} bytes, identical in both builds")


if __name__ == "__main__":
    main()
