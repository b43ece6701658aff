"""Requests, documents and study files as an artifact has them: with paths in the artifact and without private texts."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from durasim.artifacts.archive import Member
from durasim.artifacts.private import Private
from durasim.errors import host_io, refusal
from durasim.programs.workload_tables import is_path
from durasim.studies.contents import FILES, FOLDER, Contents, sha256
from durasim.studies.study import Study

FOLDERS: Mapping[str, str] = {"elf": "programs", "machine": "machines", "from": "snapshots", FOLDER: "folders"}
"""Folders of an artifact for the files that fields of a request name."""
SOURCES = "sources"
_NAMED = 16
"""Digits of a hash in the path of a file."""
_BY_VARIABLE = "(from DURASIM_CXX)"
_SEEN_BY_PROGRAM = ("elf_name", "exe_link")
"""Fields of a request with the path of an own program, which the program sees."""


class PackedFiles:
    """The files that points read, each with its path in the artifact."""

    def __init__(self, private: Private) -> None:
        """`private` has the texts that no file may contain."""
        self._private = private
        self._contents = Contents()
        self.members: dict[str, Member] = {}
        """The files by their path in the artifact."""
        self.places: dict[str, str] = {}
        """Paths in the artifact by the path on this computer."""
        self.sources: dict[str, str] = {}
        """Those of the sources of workloads, which are their names in requests and documents."""

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Adds the files of a request, and returns it with their paths in the artifact.

        Raises:
            ConfigError: A file has a private text, or a name that cannot be packed.
            HostIoError: A file cannot be read.
        """
        described = self._contents.of(request)
        placed = {name: self._file(name, str(request[name]), described[name]) for name in FILES if name in described}
        if FOLDER in described:
            placed[FOLDER] = self._folder(str(request[FOLDER]), described[FOLDER])
        if "exe_link" in request:
            self._refuse_path_of_program(request)
        elif is_path(request["workload"]):
            self._source(request["workload"])
        origin = request["origin"]
        return {
            **request,
            **placed,
            "workload": self._workload(request["workload"]),
            "origin": {**origin, "guest_compiler": _compiler(origin["guest_compiler"])},
        }

    def document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the document of a point as its request in the artifact gives it."""
        origin = document["provenance"]
        return {
            **document,
            "workload": self._workload(document["workload"]),
            "provenance": {**origin, "guest_compiler": _compiler(origin["guest_compiler"])},
        }

    def _workload(self, workload: str) -> str:
        return self.sources.get(workload, workload)

    def _refuse_path_of_program(self, request: Mapping[str, Any]) -> None:
        """Refuses the path of an own program if it is private: the program sees it, so it cannot be replaced."""
        for path in (str(request[name]) for name in _SEEN_BY_PROGRAM):
            if (found := self._private.in_text(path)) is not None:
                problem = f"{path}: the program sees this path, which contains '{found[0]}', {found[1]}"
                raise refusal("programs", f"{problem}: move it and the study to another folder, and sweep again")

    def _source(self, workload: str) -> None:
        if workload in self.sources:
            return
        source, table = Path(workload), Path(workload).with_suffix(".toml")
        try:
            content = sha256(source)
        except OSError as error:
            raise host_io(source, error) from None
        place = self.sources[workload] = self.places[workload] = self._add(SOURCES, source, content)
        if table.is_file():
            self._member(str(Path(place).with_suffix(".toml")), table, is_text=True)

    def _file(self, field: str, path: str, content: str) -> str:
        if path not in self.places:
            self.places[path] = self._add(FOLDERS[field], Path(path), content)
        return self.places[path]

    def _add(self, folder: str, path: Path, content: str) -> str:
        place = f"{folder}/{content[:_NAMED]}/{path.name}"
        self._private.refuse_in_text("the name of a file", path.name)
        if place not in self.members:
            self._member(place, path, is_text=folder in (FOLDERS["machine"], SOURCES))
        return place

    def _member(self, place: str, path: Path, *, is_text: bool, rights: int | None = None) -> None:
        if not place.isprintable() or "\\" in place:
            raise refusal("artifact", f"{path} has a name that cannot be packed: rename it, and sweep again")
        member = self.members[place] = Member(place, path, rights=rights)
        data = member.read()
        if is_text:
            self._private.refuse_in_text(os.fspath(path), data.decode(errors="replace"))
        else:
            self._private.refuse_in_file(os.fspath(path), data)

    def _folder(self, path: str, entries: Sequence[Mapping[str, Any]]) -> str:
        top = f"{FOLDERS[FOLDER]}/{hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:_NAMED]}"
        if path not in self.places:
            self.places[path] = top
            self.members[top] = Member(top)
            for entry in entries:
                self._entry(f"{top}/{entry['path']}", Path(path) / entry["path"], entry)
        return top

    def _entry(self, place: str, path: Path, entry: Mapping[str, Any]) -> None:
        self._private.refuse_in_text(f"a name in {path.parent}", path.name)
        if "link" in entry:
            self._private.refuse_in_text(f"the link {path}", entry["link"])
            self.members[place] = Member(place, link=entry["link"])
        elif "file" in entry:
            self._member(place, path, is_text=False, rights=entry["rights"])
        else:
            self.members[place] = Member(place, rights=entry["rights"])


def shown(value: Any) -> Any:
    """Returns the last part of the path of a file or folder, and other values unchanged."""
    return Path(value).name if isinstance(value, str) and os.sep in value else value


def _compiler(description: str | None) -> str | None:
    """Returns the description of a compiler without the value of the environment, or the folder, that named it."""
    if description is None or not description.endswith(_BY_VARIABLE):
        return description if description is None else Path(description).name
    return "named by DURASIM_CXX"


def study_tables(study: Study, files: PackedFiles, private: Private) -> dict[str, Any]:
    """Returns the content of a study file with the paths of the artifact, whose folder has the file.

    Folders of headers are left out: the artifact has the compiled programs.

    Raises:
        ConfigError: A text of it is private.
    """

    def placed(value: Any) -> Any:
        if isinstance(value, str):
            # A path of the study file, or one of the present folder.
            paths = os.path.join(study.folder, value), value  # noqa: PTH118 - as the study makes it
            return next((files.places[path] for path in paths if path in files.places), shown(value))
        return [placed(each) for each in value] if isinstance(value, list | tuple) else value

    tables = {name: value for name, value in study.tables.items() if name != "include_folders"}
    tables |= {name: placed(tables[name]) for name in ("machine", "workloads") if name in tables}
    if "programs" in tables:
        tables["programs"] = [{**table, "elf": placed(table["elf"])} for table in tables["programs"]]
    for section, names in (("run", ("from", FOLDER)), ("axes", ("machine", "workload", "from", FOLDER))):
        if section in tables:
            found = tables[section]
            tables[section] = {**found, **{name: placed(found[name]) for name in names if name in found}}
    if "file" in tables.get("plot", {}):
        tables["plot"] = {**tables["plot"], "file": shown(tables["plot"]["file"])}
    for key, text in _texts(tables, ""):
        private.refuse_in_text(f"{key} of the study file", text)
    return tables


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yields all texts of a study file with their keys."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, f"{key}.{name}".strip("."))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, key)
