"""The wheels of an artifact: durasim itself, and all that it needs at run time, in the versions that are installed."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from durasim import _core
from durasim.artifacts.private import Private
from durasim.errors import HostIoError, host_io, refusal

_PACKAGE = Path(__file__).resolve().parents[1]
_CORE = "durasim/_core.abi3.so"
_MADE_BY_WHEEL = ("durasim/_core.", "durasim/prebuilt/", "durasim/third_party_licenses.txt")
"""Files of the wheel of durasim that a checkout does not have, or builds otherwise."""
_CHECKOUT = _PACKAGE.parents[1]


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel of an artifact.

    Attributes:
        path: The file.
        sha256: The hash of its contents.
        unpacked_bytes: Size of the files in it.
    """

    path: Path
    sha256: str
    unpacked_bytes: int

    @property
    def requirement(self) -> str:
        """Name and version with the hash, as a line of a file of requirements."""
        name, version = self.path.name.split("-")[:2]
        return f"{name.replace('_', '-').lower()}=={version} --hash=sha256:{self.sha256}"


def wheel_of_durasim(given: str | os.PathLike[str] | None) -> Path:
    """Returns the wheel of durasim: the given file, or the one that `make wheel` has built in a checkout.

    Raises:
        ConfigError: None is given, and there is none or more than one.
    """
    if given is not None:
        return Path(given)
    is_checkout = (_CHECKOUT / "Cargo.toml").is_file()
    built = sorted((_CHECKOUT / "dist").glob("durasim-*.whl")) if is_checkout else []
    if len(built) == 1:
        return built[0]
    if built:
        raise refusal("wheel", f"{built[0].parent} has {len(built)} wheels: choose one with --wheel FILE")
    where = "`make wheel` builds it in dist/" if is_checkout else "the file from which durasim was installed"
    raise refusal("wheel", f"the artifact needs the wheel of this durasim: give it with --wheel FILE ({where})")


def check_wheel_of_durasim(wheel: Path, private: Private) -> None:
    """Refuses a file that is not a wheel of the durasim that is running, or that has private texts.

    Raises:
        ConfigError: It is no wheel, of another build, or has other files; or it has a private text.
        HostIoError: It cannot be read.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            if _CORE not in names or _core.__build__.encode() not in archive.read(_CORE):
                raise refusal("wheel", f"{wheel} is not of the build that is running ({_core.__build__}): {_AGAIN}")
            for name in names:
                content = archive.read(name)
                if name.startswith(_MADE_BY_WHEEL) or not name.startswith("durasim/"):
                    if (found := private.in_file(content)) is not None:
                        problem = f"{name} in it contains '{found[0]}', {found[1]}"
                        raise refusal("wheel", f"{wheel}: {problem}: use the wheel that `make wheel` builds")
                elif not name.endswith("/") and content != _installed(name):
                    raise refusal("wheel", f"{wheel} has another {name} than the durasim that is running: {_AGAIN}")
    except OSError as error:
        raise host_io(wheel, error) from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise refusal("wheel", f"{wheel} is no wheel: {error}") from None
    missing = {path.relative_to(_PACKAGE.parent).as_posix() for path in _PACKAGE.rglob("*.py")} - set(names)
    if missing:
        raise refusal("wheel", f"{wheel} lacks {min(missing)} of the durasim that is running: {_AGAIN}")


_AGAIN = "give the wheel of its sources, which `make wheel` builds"


def _installed(name: str) -> bytes | None:
    path = _PACKAGE.parent / name
    return path.read_bytes() if path.is_file() else None


def gather(wheel: Path, folder: str | os.PathLike[str] | None, target: Path) -> list[Wheel]:
    """Gathers the wheel of durasim and those that it needs into a folder, and returns them by name.

    `pip` chooses them for this Python and this computer, in the versions that are installed here.

    Args:
        wheel: The wheel of durasim.
        folder: A folder with the other wheels; they are downloaded if None.
        target: The folder to which they are written.

    Raises:
        ConfigError: The folder lacks one of them.
        HostIoError: `pip` is not installed, or cannot get one of them.
    """
    if folder is not None and not Path(folder).is_dir():
        raise host_io(folder, NotADirectoryError(0, "there is no such folder of wheels"))
    if importlib.util.find_spec("pip") is None:
        raise HostIoError("pip is not installed beside durasim: `python -m ensurepip` installs it")
    source = [] if folder is None else ["--no-index", "--find-links", os.fspath(folder)]
    with tempfile.NamedTemporaryFile("w", prefix="durasim-", suffix=".txt") as constraints:
        constraints.write("".join(f"{line}\n" for line in _installed_versions()))
        constraints.flush()
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check",
            "--only-binary", ":all:", "--constraint", constraints.name, "--dest", str(target), *source, str(wheel),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")] or done.stderr.splitlines()
        reason = reasons[-1].removeprefix("ERROR: ") if reasons else f"exit code {done.returncode}"
        if folder is not None:
            raise refusal("wheels", f"{folder} lacks a wheel that durasim needs here: {reason}")
        raise HostIoError(f"pip could not download what durasim needs ({reason}): give the wheels with --wheels FOLDER")
    return [_described(path) for path in sorted(target.glob("*.whl"))]


def _installed_versions() -> list[str]:
    """Returns all installed distributions but durasim, as constraints for pip."""
    found: dict[str, str] = {}
    for of in importlib.metadata.distributions():
        # The first of a name is the one that is imported.
        found.setdefault(of.metadata["Name"] or "", of.version)
    return sorted(f"{name}=={version}" for name, version in found.items() if name.lower() not in ("", "durasim"))


def _described(path: Path) -> Wheel:
    with zipfile.ZipFile(path) as archive:
        unpacked_bytes = sum(member.file_size for member in archive.infolist())
    return Wheel(path, hashlib.sha256(path.read_bytes()).hexdigest(), unpacked_bytes)


def requirements(wheels: Sequence[Wheel]) -> str:
    """Returns the file of requirements that locks these wheels."""
    return "".join(f"{wheel.requirement}\n" for wheel in wheels)
