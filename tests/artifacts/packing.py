"""Made-up wheels and marked private texts, with which artifacts are packed and unpacked in tests."""

import io
import os
import shutil
import tarfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import command_line
import durasim
from durasim import _core
from durasim.artifacts.wheels import _MADE_BY_WHEEL
from studies.in_process import InProcess

PACKAGE = Path(durasim.__file__).parent
STUDY = """
# Measured by marked-person on marked-host, in the folder of marked-value-of-a-variable.
name = "small study"
designs = ["opt", "hercules"]
workloads = ["btree"]
machine = "own-machine.toml"
ops = 5
args = { populate = 8 }
"""


def wheel(folder, name, version, files, needs=()):
    """Writes a wheel and returns its path."""
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {of}" for of in needs)]
    files = {
        **files,
        f"{info}/METADATA": "\n".join(lines).encode() + b"\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for member, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(member), content)
    return path


def wheel_of_durasim(folder, build=_core.__build__, **changed):
    """Writes a wheel with the files of the package that is running, and a core that has the hash of its build alone."""
    files = {f"durasim/{name}": content for name, content in changed.items()}
    for place, _, names in os.walk(PACKAGE, followlinks=True):
        for path in (Path(place) / name for name in names if name.endswith((".py", ".toml", ".json"))):
            member = f"durasim/{path.relative_to(PACKAGE).as_posix()}"
            if not member.startswith(_MADE_BY_WHEEL):
                files.setdefault(member, path.read_bytes())
    files["durasim/_core.abi3.so"] = f"the core of {build}".encode()
    return wheel(folder, "durasim", _core.__version__, files, ["made-up-library>=1"])


def wheels_folder(folder):
    """Writes a folder with the one wheel that the made-up wheel of durasim needs, and one of a tool of tests."""
    wheel(folder, "made_up_library", "1.2", {"made_up_library.py": b"x = 1\n"})
    wheel(folder, "made_up_test_tool", "3.0", {"made_up_test_tool.py": b"x = 1\n"})
    return folder


class Author:
    """A person with marked names, whose files are below a marked home."""

    marks = (b"marked-person", b"marked-home", b"marked-host", b"marked-value-of-a-variable")

    def __init__(self, folder):
        """`folder` has the home and the wheels."""
        self.home = folder / "marked-home"
        self.study = self.home / "study"
        self.study.mkdir(parents=True)
        self.store = self.home / "results.sqlite"
        self.wheel, self.wheels = wheel_of_durasim(folder / "dist"), wheels_folder(folder / "wheels")
        shutil.copy(PACKAGE / "machines" / "tiny.toml", self.study / "own-machine.toml")
        self.file = self.study / "study.toml"
        self.file.write_text(STUDY)

    @contextmanager
    def at_work(self):
        """Replaces the names of user and host."""
        with mock.patch("socket.gethostname", return_value="marked-host.example"):
            yield {
                **os.environ,
                "HOME": str(self.home),
                "USER": "marked-person",
                "LOGNAME": "marked-person",
                "MARKED": "marked-value-of-a-variable",
            }

    def run(self, *words, cwd=None):
        """Runs a command of durasim, with simulations in this process."""
        in_process = mock.patch("durasim.studies.executor.LocalProcesses", lambda _jobs: InProcess())
        with self.at_work() as env, in_process:
            return command_line.run(*words, env=env, cwd=cwd or self.study)

    def sweep(self):
        """Simulates the study."""
        done = self.run("sweep", self.file, "--store", self.store)
        assert done.returncode == 0, done.stderr

    def artifact(self, subject, *options, cwd=None):
        """Packs an artifact with the made-up wheels."""
        given = {"--store": self.store, "--wheel": self.wheel, "--wheels": self.wheels}
        words = [word for pair in given.items() if pair[0] not in options for word in pair]
        return self.run("artifact", subject, *words, *options, cwd=cwd)


def members_of(path):
    """The names, and the contents of files, of an artifact."""
    with tarfile.open(path) as archive:
        return {of.name: archive.extractfile(of).read() if of.isfile() else None for of in archive.getmembers()}


def all_contents(path):
    """All names and decompressed contents of an artifact, those in wheels among them."""
    for name, content in members_of(path).items():
        yield name, name.encode()
        yield name, content or b""
        if name.endswith(".whl"):
            with zipfile.ZipFile(io.BytesIO(content)) as inner:
                yield from ((f"{name}: {each}", each.encode() + inner.read(each)) for each in inner.namelist())


def unpacked(path, folder):
    """Unpacks an artifact and returns its folder."""
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return top
