"""Simulates the points of an unpacked artifact again, and compares their documents with the packed ones."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from durasim import _core
from durasim.artifacts.archive import MANIFEST
from durasim.artifacts.pack import POINTS
from durasim.documents.artifact import RERUN_SCHEMA, Deviation, Rerun, RerunPoint
from durasim.documents.toml_files import schema_named, validate
from durasim.errors import host_io, refusal
from durasim.output import read_json
from durasim.store.database import TIMES_OF_HOST, Store
from durasim.store.keys import Keys, presets, writes
from durasim.studies.contents import FILES, FOLDER, sha256
from durasim.studies.executor import Executor
from durasim.studies.tasks import task_text

STORE = "rerun/results.sqlite"
"""The store of the new results, which an interrupted rerun continues with."""
EQUAL, DIFFERENT, FAILED = "equal", "different", "failed"


def rerun(
    folder: str | os.PathLike[str], executor: Callable[[], Executor], progress: Callable[[int, int], None]
) -> Rerun:
    """Simulates the points of an artifact again and compares.

    Args:
        folder: The unpacked artifact.
        executor: Starts the workers.
        progress: Called with the points done and their total.

    Raises:
        ConfigError: The folder is no artifact, a file of it is changed, or it is of another build of durasim.
        HostIoError: A file cannot be read or written.
    """
    top = Path(folder)
    _check_files(top)
    described = _described(top)
    requests = [_placed(top, each["request"]) for each in described["points"]]
    with Store(_store_of(top)) as store:
        again = _Again(store, [(each["kind"], of) for each, of in zip(described["points"], requests, strict=True)])
        try:
            again.run(executor, progress)
        except KeyboardInterrupt as interrupt:
            done = f"{len(again.answers)} of {len(requests)} points were done"
            interrupt.add_note(f"{done}, and their results are kept in {store.path}: the same command continues")
            raise
    points = [
        _compared(
            each["result"], read_json(os.fspath(_inside(top, each["result"])), "artifact"), *again.answers[number]
        )
        for number, each in enumerate(described["points"])
    ]
    states = [point.state for point in points]
    return Rerun(
        schema=RERUN_SCHEMA,
        durasim_version=_core.__version__,
        build=_core.__build__,
        name=described["name"],
        points=tuple(points),
        equal=states.count(EQUAL),
        different=states.count(DIFFERENT),
        failed=states.count(FAILED),
    )


def _check_files(top: Path) -> None:
    """Refuses a folder with files that are not those of its manifest; files that a rerun adds are allowed."""
    manifest = top / MANIFEST
    try:
        lines = manifest.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise host_io(manifest, error) from None
    except UnicodeDecodeError:
        raise refusal("artifact", f"{manifest} is not a text file") from None
    listed = set()
    for line in lines:
        expected, _, name = line.partition("  ")
        path = _inside(top, name)
        try:
            found = sha256(path)
        except OSError as error:
            raise host_io(path, error) from None
        if found != expected:
            raise refusal("artifact", f"{path} is not the file that was packed: unpack the artifact again")
        listed.add(name)
    if POINTS not in listed:
        raise refusal("artifact", f"{manifest} does not list {POINTS}: this folder is no artifact of durasim")


def _described(top: Path) -> Any:
    described = read_json(os.fspath(top / POINTS), "artifact")
    validate(described, schema_named("artifact"), "artifact", f"{POINTS}: ")
    if described["build"] != _core.__build__:
        problem = f"is of build {described['build']}, and this durasim is of build {_core.__build__}"
        raise refusal("artifact", f"it {problem}: start its run.sh, which installs its wheels")
    return described


def _store_of(top: Path) -> Path:
    path = top / STORE
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise host_io(path.parent, error) from None
    return path


def _inside(top: Path, name: str) -> Path:
    """Returns a path in the artifact; refuses one that leaves its folder.

    Raises:
        ConfigError: It is absolute, or leaves the folder.
    """
    path = top / name
    if not path.resolve().is_relative_to(top.resolve()):
        raise refusal("artifact", f"'{name}' is not in the folder of the artifact")
    return path


def _placed(top: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a request with the paths of the unpacked files."""
    if (written := writes(request)) is not None:
        raise refusal("artifact", f"a point of {POINTS} would write to this computer ({written})")
    named = [name for name in (*FILES, FOLDER) if request.get(name) is not None]
    placed = {
        name: os.fspath(_inside(top, request[name]).resolve())
        for name in named
        if not (name == "machine" and request[name] in presets())
    }
    return {**request, **placed}


class _Again:
    """Simulates points again; those that an interrupted rerun has stored are answered from its store."""

    def __init__(self, store: Store, points: list[tuple[str, dict[str, Any]]]) -> None:
        """`points` have a kind and a request each."""
        self._store, self._points, self._keys = store, points, Keys()
        self.answers: dict[int, tuple[Mapping[str, Any] | None, str | None]] = {}
        """The document of each point, or the reason why there is none."""

    def run(self, executor: Callable[[], Executor], progress: Callable[[int, int], None]) -> None:
        """Simulates all points."""
        keys = [self._keys.of(kind, request) for kind, request in self._points]
        for number, key in enumerate(keys):
            if (document := self._store.get(key)) is not None:
                self.answers[number] = document, None
        waiting, running = deque(number for number in range(len(keys)) if number not in self.answers), 0
        progress(len(self.answers), len(keys))
        if not waiting:
            return
        with executor() as workers:
            while waiting or running:
                while waiting and running < workers.capacity:
                    number = waiting.popleft()
                    workers.submit(number, task_text(*self._points[number]))
                    running += 1
                for answer in workers.answers():
                    running -= 1
                    self.answers[answer.number] = self._kept(answer.number, keys[answer.number], answer.text)
                    progress(len(self.answers), len(keys))

    def _kept(self, number: int, key: str, text: str | None) -> tuple[Mapping[str, Any] | None, str | None]:
        if text is None:
            return None, "its process was killed, perhaps for lack of memory: run again with a smaller --jobs"
        found = json.loads(text)
        if "error" in found:
            return None, found["error"]
        kind, request = self._points[number]
        self._store.put(key, kind, request, found["document"], seconds=found["seconds"], study="rerun")
        return found["document"], None


def _compared(result: str, expected: Any, found: Mapping[str, Any] | None, error: str | None) -> RerunPoint:
    deviations = () if found is None else tuple(deviations_of(expected, found))
    return RerunPoint(
        result=result,
        design=str(expected["design"]),
        workload=str(expected["workload"]),
        state=FAILED if found is None else DIFFERENT if deviations else EQUAL,
        seconds=0.0 if found is None else float(found["host"]["seconds"]),
        differences=deviations,
        error=error,
    )


def deviations_of(expected: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Deviation]:
    """Yields the values of two documents that differ, without times and memory of the host."""
    before, after = (
        dict(_leaves({name: value for name, value in of.items() if name not in TIMES_OF_HOST}, ""))
        for of in (expected, found)
    )
    for place in dict.fromkeys((*before, *after)):
        if before.get(place) != after.get(place) or (place in before) != (place in after):
            yield Deviation(place, before.get(place), after.get(place))


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yields all values of a document with their places; empty lists and objects are values."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{number}]")
    else:
        yield place, value
