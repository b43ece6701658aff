"""Packs an artifact: configuration, wheels, programs, results, and a script that simulates them again and compares."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from durasim import _core
from durasim.artifacts import archive, wheels
from durasim.artifacts.appendix import appendix
from durasim.artifacts.archive import Member
from durasim.artifacts.evidence import Evidence
from durasim.artifacts.packed import PackedFiles, study_tables
from durasim.artifacts.private import Private, private_texts
from durasim.documents.artifact import Artifact
from durasim.errors import host_io, refusal
from durasim.output import check_writable, to_json
from durasim.programs import suites, workload_tables
from durasim.runs.scenario import design_variants
from durasim.store.keys import presets
from durasim.studies.study import Study

SCHEMA = "durasim-artifact/1"
POINTS = "points.json"
RESULTS = "results"
_STORE = "rerun/results.sqlite"
_NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Wanted:
    """An artifact to pack.

    Attributes:
        evidence: Its points and numbers.
        study: The study; None for figures of papers.
        shows: The command that prints the tables of the evidence, without program and store.
    """

    evidence: Evidence
    study: Study | None
    shows: Sequence[str]

    @property
    def top(self) -> str:
        """The folder that has the unpacked artifact."""
        return f"{_NAME.sub('-', self.evidence.name).strip('-') or 'study'}-artifact"


def refuse_own_core() -> None:
    """Refuses a core with designs of the user, which no wheel of durasim has.

    Raises:
        ConfigError: There is one.
    """
    if os.environ.get("DURASIM_CORE"):
        raise refusal("artifact", "packs designs of durasim alone: the wheel has none of the user (DURASIM_CORE)")


def checked_target(output: str | os.PathLike[str] | None, name: str) -> str:
    """Returns the file of an artifact, after a check that it can be written.

    Raises:
        HostIoError: It cannot be written.
    """
    target = f"{name}.tar.gz" if output is None else os.fspath(output)
    check_writable(target)
    return target


def pack(wanted: Wanted, target: str, wheel: Path, folder: str | os.PathLike[str] | None) -> Artifact:
    """Packs an artifact into a file.

    Args:
        wanted: The points and numbers.
        target: The file.
        wheel: The wheel of durasim.
        folder: A folder with the wheels that durasim needs; `pip` downloads them if None.

    Raises:
        ConfigError: The wheel is not that of the durasim that is running, or a text or file has private texts.
        HostIoError: A file cannot be read or written, or `pip` cannot get a wheel.
    """
    private = private_texts(_known())
    wheels.check_wheel_of_durasim(wheel, private)
    files = PackedFiles(private)
    members = list(_configuration(wanted, files, private))
    with tempfile.TemporaryDirectory(prefix="durasim-") as place:
        gathered = wheels.gather(wheel, folder, Path(place))
        locked = [Member(f"wheels/{of.path.name}", of.path) for of in gathered]
        members += [Member("requirements.lock", wheels.requirements(gathered).encode())]
        members += [archive.program("run.sh", _script())]
        for member in members:
            private.refuse_in_file(member.path, member.read())
        members += [*files.members.values(), *locked]
        disk_bytes = sum(len(of.read()) for of in members if of.content is not None)
        disk_bytes += sum(of.unpacked_bytes for of in gathered)
        text = appendix(
            wanted.evidence, gathered, disk_bytes=disk_bytes, programs=_programs(files), top=wanted.top,
            shows=f"venv/bin/durasim {' '.join(wanted.shows)} --store {_STORE}", folders=_folders(files),
            has_study=wanted.study is not None,
        )  # fmt: skip
        private.refuse_in_file("README.md", text.encode())
        members.append(Member("README.md", text.encode()))
        size = archive.write(target, wanted.top, members)
    return _described(wanted, target, gathered, files, disk_bytes=max(disk_bytes, size))


def _configuration(wanted: Wanted, files: PackedFiles, private: Private) -> Iterator[Member]:
    """Yields what describes the points: study, requests, documents and numbers."""
    listed = []
    for place, point in enumerate(wanted.evidence.points, 1):
        request, document = files.request(point.prepared.request), files.document(point.document)
        result = f"{RESULTS}/{place:0{len(str(len(wanted.evidence.points)))}}.json"
        listed.append({"kind": point.prepared.point.kind, "request": request, "result": result})
        yield Member(result, to_json(document).encode())
    described = {
        "schema": SCHEMA,
        "durasim_version": _core.__version__,
        "build": _core.__build__,
        "name": wanted.evidence.name,
        "points": listed,
    }
    yield Member(POINTS, to_json(described).encode())
    yield Member(f"{RESULTS}/numbers.csv", wanted.evidence.csv.encode())
    if wanted.study is not None:
        import tomli_w  # noqa: PLC0415 - keeps the start-up of other commands short

        yield Member("study.toml", tomli_w.dumps(study_tables(wanted.study, files, private)).encode())


def _script() -> str:
    """Returns the script that installs, simulates again and compares, for this Python and this system."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = resources.files("durasim").joinpath("artifacts/run.sh").read_text(encoding="utf-8")
    replaced = {
        "@PYTHON_TUPLE@": python.replace(".", ", "), "@PYTHON@": python,
        "@SYSTEM@": f"{platform.system()} {platform.machine()}",
    }  # fmt: skip
    for name, value in replaced.items():
        text = text.replace(name, value)
    return text


def _known() -> frozenset[str]:
    """Returns names of durasim, which texts have whatever the user or the computer is called."""
    members = (member.info.name for member in suites.members())
    works = (work.name for work in workload_tables.workloads())
    return frozenset({*design_variants(), *presets(), *works, *members, *suites.suite_names()})


def _programs(files: PackedFiles) -> int:
    return sum(path.startswith("programs/") for path in files.members)


def _folders(files: PackedFiles) -> list[tuple[str, str]]:
    """Returns the folders of files that points read, with their contents."""
    contents = {
        "programs": "the simulated programs as ELF files, by SHA-256",
        "machines": "machine files, by SHA-256",
        "snapshots": "snapshots from which points start, by SHA-256",
        "folders": "folders that programs read",
        "sources": "sources of own workloads, by SHA-256; headers that they include from other folders are left out",
    }
    used = {path.partition("/")[0] for path in files.members}
    return [(name, words) for name, words in contents.items() if name in used]


def _described(
    wanted: Wanted, target: str, gathered: Sequence[wheels.Wheel], files: PackedFiles, *, disk_bytes: int
) -> Artifact:
    try:
        data = Path(target).read_bytes()
    except OSError as error:
        raise host_io(target, error) from None
    hosts: list[Mapping[str, Any]] = [point.document["host"] for point in wanted.evidence.points]
    return Artifact(
        path=target,
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        points=len(hosts),
        programs=_programs(files),
        wheels=len(gathered),
        numbers=sum(len(table.rows) for table in wanted.evidence.tables),
        disk_bytes=disk_bytes,
        seconds=sum(float(host["seconds"]) for host in hosts),
        memory_bytes=max(int(host["peak_rss_bytes"]) for host in hosts),
    )
