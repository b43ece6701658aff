"""Shared populations: a program is populated once, its snapshot is kept by content, and those of others are refused."""

import os
import stat

import pytest
from in_process import SMALL, InProcess, sweep

import durasim as ds
from durasim.store.database import Store
from durasim.store.snapshots import Snapshots
from durasim.studies.plan import plan_of
from durasim.studies.study import study_of

KEYS = {"shared_population": True, "designs": ["hercules", "tc"], "axes": {"llc.size_bytes": ["4KiB", "8KiB"]}}


def files(path):
    return sorted(path.parent.glob("*.snapshots/*"))


def test_the_points_of_a_program_start_from_one_snapshot(tmp_path):
    path = tmp_path / "s.sqlite"
    executor = InProcess()
    result = sweep(path, executor, **KEYS)
    (snapshot,) = files(path)
    assert stat.S_IMODE(snapshot.stat().st_mode) == 0o600
    assert stat.S_IMODE(snapshot.parent.stat().st_mode) == 0o700
    # One task populates, four simulate.
    assert (result.simulated, len(executor.simulated)) == (4, 5)
    with Store(path) as store:
        documents = [store.get(point.key) for point in result.points]
    assert len({document["provenance"]["snapshot_hash"] for document in documents}) == 1
    study = study_of(SMALL | KEYS)
    with Store(path) as store:
        assert plan_of(study, store, 1).to_simulate == 0
    assert plan_of(study, None, 1).to_simulate == 4
    again = sweep(path, executor, **KEYS)
    assert (again.reused, len(executor.simulated)) == (4, 5)
    assert str(snapshot) in result.points[0].command


def test_a_snapshot_that_is_lost_or_changed_is_populated_again_with_equal_bytes(tmp_path):
    path = tmp_path / "s.sqlite"
    first = sweep(path, **KEYS)
    (snapshot,) = files(path)
    data = snapshot.read_bytes()
    for spoil in (snapshot.unlink, lambda: snapshot.write_bytes(data[:-1] + b"?")):
        spoil()
        executor = InProcess()
        again = sweep(path, executor, **KEYS)
        assert (again.reused, len(executor.simulated), files(path)) == (4, 1, [snapshot])
        assert snapshot.read_bytes() == data
    temporary = sweep(**KEYS)
    assert [point.digest for point in temporary.points] == [point.digest for point in first.points]


def test_other_programs_have_other_snapshots_and_machines_of_points_do_not_matter(tmp_path):
    path = tmp_path / "s.sqlite"
    sweep(path, **KEYS)
    sweep(path, **KEYS | {"axes": {"llc.size_bytes": ["16KiB"]}})
    assert len(files(path)) == 1
    sweep(path, **KEYS | {"axes": {"arg.populate": [9, 10]}, "args": None})
    assert len(files(path)) == 3


def test_snapshots_are_removed_above_the_limit_least_recently_used_first(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        snapshots = Snapshots(store, limit_bytes=250)
        for number in range(3):
            snapshots.fresh_path(f"k{number}").write_bytes(bytes([number]) * 100)
            snapshots.keep(f"k{number}", snapshots.fresh_path(f"k{number}"))
            store.put_snapshot("k0", store.snapshot("k0"), 100, 2**40)
        assert [snapshots.get(f"k{number}") is not None for number in range(3)] == [True, False, True]
        assert len(list(snapshots.folder.iterdir())) == 2
        # Equal contents are one file.
        snapshots.fresh_path("k9").write_bytes(bytes([2]) * 100)
        assert snapshots.keep("k9", snapshots.fresh_path("k9")) == snapshots.get("k2")


def test_snapshots_of_other_users_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "s.sqlite"
    sweep(path, **KEYS)
    (snapshot,) = files(path)
    snapshot.chmod(0o622)
    with pytest.raises(ds.ConfigError, match=r"snapshot can be written by other users: change its mode"):
        sweep(path, **KEYS)
    snapshot.chmod(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: snapshot.stat().st_uid + 1)
    with pytest.raises(ds.ConfigError, match=r"snapshots belongs to another user: use another --store"):
        sweep(path, **KEYS)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"kind": "crash"}, "shared_population: applies only to a study of kind run"),
        ({"run": {"fast_forward": 0}}, "cannot be combined with fast_forward"),
        ({"axes": {"from": ["a"]}}, "cannot be combined with from"),
    ],
)
def test_a_start_that_is_set_twice_is_refused(changed, sentence):
    with pytest.raises(ds.ConfigError, match=sentence):
        sweep(**KEYS | changed)
