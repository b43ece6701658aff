"""`durasim.Machine`: keys by name, presets with changes, machine files, and their use in the API."""

import inspect
import tomllib
from pathlib import Path

import pytest

import durasim as ds
from durasim.api import described_study
from durasim.documents.described_machine import CacheConfig, MachineArguments
from durasim.runs import comparison
from durasim.runs.scenario import scenario_of

CHANGED = {"cores": 2, "llc": {"size_bytes": "8KiB"}, "design": {"tc": {"entries": 8}}}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("row", ds.machines(), ids=lambda row: row["name"])
def test_a_preset_is_its_file(row):
    machine = ds.Machine.preset(row["name"])
    assert machine.to_dict() == tomllib.loads(ds.machine_toml(row["name"])) == tomllib.loads(machine.to_toml())
    assert ds.Machine(**machine.to_dict()).to_dict() == machine.to_dict()
    assert (machine.option(), machine.settings()) == (row["name"], {})


def test_a_changed_preset_is_the_preset_with_settings():
    machine = ds.Machine.preset("tiny", **CHANGED)
    assert machine.settings() == {"cores": 2, "llc.size_bytes": 8192, "design.tc.entries": 8}
    assert machine == ds.Machine.preset("tiny", **{"cores": 2, "llc.size_bytes": "8KiB", "design.tc.entries": 8})
    assert (machine.to_dict()["llc"]["ways"], machine.to_dict()["llc"]["size_bytes"]) == (8, 8192)
    scenario = scenario_of(design="tc", workload="btree", machine=machine, set={"llc.ways": 4})
    assert scenario.machine == "tiny"
    assert scenario.settings == ("cores=2", "llc.size_bytes=8192", "design.tc.entries=8", "llc.ways=4")
    scenario.check()
    of_opt, of_tc = comparison.scenarios(["opt", "tc"], ["btree"], machine=machine)
    assert set(of_tc.settings) - set(of_opt.settings) == {"design.tc.entries=8"}


def test_an_optional_section_can_be_removed():
    machine = ds.Machine.preset("tiny", l2=None)
    assert "l2" not in machine.to_dict()
    assert machine.settings() == {"l2": "none"}


def test_a_machine_with_a_name_is_a_file_with_all_its_keys():
    machine = ds.Machine.preset("tiny", name="mine", **CHANGED)
    path = machine.option()
    assert path == machine.option() and machine.settings() == {}
    assert tomllib.loads(Path(path).read_text(encoding="utf-8")) == machine.to_dict()
    assert ds.Machine.preset(path).to_dict() == machine.to_dict()


def test_a_machine_is_used_by_a_run():
    run = {"design": "opt", "workload": "array-swap", "ops": 2, "workload_args": {"populate": 8}}
    machine = ds.Machine.preset("tiny", llc={"size_bytes": "8KiB"})
    changed = ds.run(machine=machine, **run)
    assert changed.configuration["llc"]["size_bytes"] == 8192
    assert (changed.machine, changed.provenance.set) == ("tiny", ("llc.size_bytes=8192",))
    named = ds.run(machine=ds.Machine.preset("tiny", name="mine", llc={"size_bytes": "8KiB"}), **run)
    assert (named.machine, named.provenance.set) == ("mine", ())
    assert (named.roi.cycles, named.pmem_write_bytes) == (changed.roi.cycles, changed.pmem_write_bytes)


def test_a_machine_is_used_by_a_study():
    study = {"name": "s", "designs": ["opt"], "workloads": ["btree"]}
    one = described_study(None, {**study, "machine": ds.Machine.preset("tiny", cores=2), "set": {"llc": {"ways": 4}}})
    (point,) = one.points()
    assert (point.scenario.machine, point.scenario.settings) == ("tiny", ("cores=2", "llc.ways=4"))
    named = ds.Machine.preset("tiny", name="mine", cores=2)
    several = described_study(None, {**study, "machine": ["tiny", named]})
    assert [point.scenario.machine for point in several.points()] == ["tiny", named.option()]
    with pytest.raises(ds.ConfigError, match="machine: tiny has changed keys: give it a name"):
        described_study(None, {**study, "machine": [ds.Machine.preset("tiny", cores=2)]})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ds.Machine.preset("tinny"), "machine: unknown name 'tinny' (did you mean 'tiny'?"),
        (lambda: ds.Machine.preset("tiny", llcc={}), "machine: unknown name 'llcc' (did you mean 'llc'?"),
        (lambda: ds.Machine.preset("tiny", llc={"size_byte": 1}), "llc: unknown name 'size_byte' (did you mean"),
        (lambda: ds.Machine.preset("tiny", **{"llc.wais": 1}), "llc: unknown name 'wais' (did you mean 'ways'?"),
        (lambda: ds.Machine.preset("tiny", design={"hercule": {}}), "design: unknown name 'hercule' (did you mean"),
        (lambda: ds.Machine.preset("tiny", llc={"size_bytes": "8KB"}), "llc.size_bytes: '8KB' is not a size"),
        (lambda: ds.Machine.preset("tiny", cores="two"), "cores: 'two' is not of type 'integer'"),
        (lambda: ds.Machine.preset("tiny", core=None), "'core' is a required property"),
        (lambda: ds.Machine(name="empty"), "is a required property"),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value_is_refused_with_the_nearest_name(make, sentence):
    with pytest.raises(ds.ConfigError) as refused:
        make()
    assert sentence in str(refused.value)


def test_parameters_of_one_name_have_the_values_of_their_design():
    changed = {"design.tc.commit": "accepted", "design.hoop.commit": "migrated", "design.fwb.acknowledged_by": "medium"}
    machine = ds.Machine.preset("tiny", **changed, **{"design.hoop.acknowledged_by": "medium"})
    assert machine.settings() == changed | {"design.hoop.acknowledged_by": "medium"}
    with pytest.raises(ds.ConfigError, match="is not valid"):
        ds.Machine.preset("tiny", **{"design.hoop.commit": "accepted"})


def test_ranges_are_checked_when_the_machine_is_used():
    with pytest.raises(ds.ConfigError, match="cores"):
        ds.run(workload="btree", machine=ds.Machine.preset("tiny", cores=33), ops=1)


def test_editors_and_interactive_help_list_the_keys():
    keys = set(ds.machine_schema()["properties"])
    assert set(MachineArguments.__annotations__) == keys == set(inspect.signature(ds.Machine).parameters)
    assert "size_bytes: Capacity in bytes" in CacheConfig.__doc__


def test_a_notebook_shows_keys_values_and_descriptions():
    page = ds.Machine.preset("tiny", name="<b>")._repr_html_()
    assert "&lt;b&gt;: A machine for crash checking" in page and "<b>" not in page
    assert "Number of cores." in page and "core.context_switch_cycles" not in page
    frame = ds.Machine.preset("tiny").to_frame()
    assert frame.filter(key="llc.size_bytes")["value"].to_list() == ["4096"]
    assert repr(ds.Machine.preset("tiny", cores=2)) == "Machine('tiny', cores=2)"
