"""Estimates of a plan: the functional runs that count the instructions of programs."""

import pytest
from in_process import SMALL

from durasim import _core
from durasim.studies import estimates
from durasim.studies.plan import plan_of
from durasim.studies.study import study_of


class Counting:
    """The simulator, with the number of its runs."""

    runs = 0

    def run(self, *arguments):
        self.runs += 1
        return _core.run(*arguments)


@pytest.mark.parametrize(("limit", "axes"), [(10**9, {"seed": [1, 2]}), (10, {"ops": [4, 8]})])
def test_a_plan_runs_each_program_once(monkeypatch, limit, axes):
    counting = Counting()
    monkeypatch.setattr(estimates, "_core", counting)
    keys = {name: value for name, value in SMALL.items() if name not in axes}
    study = study_of(keys | {"designs": ["opt"], "axes": axes})
    lengths = estimates.ProgramLengths(limit)
    plans = [plan_of(study, None, 1, lengths) for _ in range(2)]
    # Seeds hardly change the length, more operations do not shorten it, and the second plan finds it.
    assert [plan.to_simulate for plan in plans] == [2, 2]
    assert counting.runs == 1
    assert all((plan.minutes is None) == (limit == 10) for plan in plans)
