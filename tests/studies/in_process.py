"""Studies simulated in the process of a test: starting worker processes takes longer than small simulations."""

from collections import deque

from durasim.store.database import Store
from durasim.studies.executor import Answer
from durasim.studies.study import study_of
from durasim.studies.study_run import StudyRun
from durasim.studies.tasks import simulate

SMALL = {
    "name": "small",
    "designs": ["hercules"],
    "workloads": ["array-swap"],
    "machine": "tiny",
    "ops": 4,
    "args": {"populate": 8},
}


class InProcess:
    """An executor that simulates each task when its answer is asked for; `lose` names tasks whose worker is killed."""

    def __init__(self, capacity=2, lose=lambda *_: False):
        self.capacity, self.simulated, self._lose = capacity, [], lose
        self._attempts, self._waiting = {}, deque()

    def submit(self, number, task):
        self._waiting.append((number, task))

    def answers(self):
        number, task = self._waiting.popleft()
        self._attempts[number] = self._attempts.get(number, 0) + 1
        if self._lose(number, self._attempts[number]):
            lost = [number, *(other for other, _ in self._waiting)]
            self._waiting.clear()
            return [Answer(each, None) for each in lost]
        self.simulated.append(number)
        return [Answer(number, simulate(task))]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def sweep(path=None, executor=None, folder="", yes=False, **keys):
    """Runs a study and returns its result; `path` is that of the store, `keys` those that differ from `SMALL`."""
    tables = {name: value for name, value in {**SMALL, **keys}.items() if value is not None}
    study = study_of(tables, str(folder))
    store = None if path is None else Store(path)
    try:
        return StudyRun(study, store, lambda *_: None, yes=yes).run(lambda: executor or InProcess())
    finally:
        if store is not None:
            store.close()
