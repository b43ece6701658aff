"""Typed results and the statistics tree."""

import dataclasses
import json
import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import durasim as ds
import samples

NAMES = st.text(alphabet="abcdefgh_", min_size=1, max_size=6)
LEAVES = st.fixed_dictionaries(
    {"value": st.integers(0, 2**50), "unit": st.sampled_from(["count", "bytes"]), "description": st.just("A sentence.")}
)
TREES = st.recursive(LEAVES, lambda below: st.dictionaries(NAMES, below, min_size=1, max_size=4), max_leaves=12).filter(
    lambda tree: "unit" not in tree
)


def test_the_document_comes_back_and_conforms(conforms):
    result = ds.RunResult.from_dict(samples.RUN)
    conforms("run", result.to_dict())
    assert ds.RunResult.from_dict(json.loads(result.to_json())) == result
    assert list(result.to_dict()) == list(samples.RUN)
    assert result.to_dict() == samples.RUN


def test_fields_are_typed_and_frozen():
    result = ds.RunResult.from_dict(samples.RUN)
    assert result.roi.ipc == 0.5
    assert result.pmem_write_bytes.data == 640
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.design = "hercules"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": "one"}, ["seed", "int"]),
        ({"roi": {}}, ["roi", "cycles"]),
        ({"roi__extra": 1}, ["roi", "extra"]),
        ({"stats": 3}, ["stats"]),
        ({"ops": True}, ["ops"]),
    ],
)
def test_a_document_of_another_kind_is_refused(changes, words):
    with pytest.raises(ds.ConfigError) as refusal:
        ds.RunResult.from_dict(samples.run(**changes))
    assert refusal.value.exit_code == 2
    for word in words:
        assert word in str(refusal.value)


def test_statistics_by_attribute_and_by_path():
    stats = ds.RunResult.from_dict(samples.RUN).stats
    assert stats.l1d.misses.value == stats["l1d.misses"].value == stats["l1d"]["misses"].value == 12
    assert isinstance(stats.l1d.misses, ds.Stat)
    assert isinstance(stats.l1d.misses.value, int)
    assert stats.l1d.miss_ratio.unit == "ratio"
    assert dict(stats.walk())["cycles"].description == "Cycles."
    with pytest.raises(AttributeError, match="misses"):
        _ = stats.l1d.hits
    with pytest.raises(KeyError, match="l1d"):
        _ = stats["l2.misses"]
    assert pickle.loads(pickle.dumps(stats)) == stats  # noqa: S301 - our own bytes


def test_dotted_paths_and_nested_objects_are_one_tree():
    leaf = {"value": 1.0, "unit": "count", "description": "One."}
    flat = ds.StatTree.from_dict({"a.b": leaf, "a.c.d": leaf})
    nested = ds.StatTree.from_dict({"a": {"b": leaf, "c": {"d": leaf}}})
    assert flat.to_dict() == nested.to_dict()
    assert flat == nested


def test_a_statistic_cannot_be_a_level_too():
    leaf = {"value": 1, "unit": "count", "description": "One."}
    with pytest.raises(ds.ConfigError, match=r"a\.b"):
        ds.StatTree.from_dict({"a": leaf, "a.b": leaf})


# A busy machine draws slowly.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES)
def test_any_tree_comes_back(tree):
    stats = ds.StatTree.from_dict(tree)
    assert stats.to_dict() == tree
    for path, stat in stats.walk():
        assert stats[path] is stat
