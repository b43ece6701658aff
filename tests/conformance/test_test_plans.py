"""The test plans of designs refer to existing faults, counters, assumptions and parameters."""

import pytest

import durasim as ds
from durasim.crashes.campaign_file import read
from durasim.crashes.mutants import all_mutants
from durasim.crashes.test_plans import measurements, plan_of, plans

ROWS = {row["name"]: row for row in ds.designs()}
ROWS_WITH_FAULTS = sorted({fault.design for fault in all_mutants()})


def test_every_row_has_a_description():
    assert list(plans()) == list(ROWS)
    assert all(of.campaigns for of in plans().values())


@pytest.mark.parametrize("design", ROWS_WITH_FAULTS)
def test_faults_are_there_and_can_be_seen(design):
    of = plan_of(design)
    visible = {fault.name for fault in all_mutants() if fault.design == design and fault.equivalent is None}
    assert len(of.quick_faults) >= 3
    assert visible.issuperset(of.quick_faults)
    assert of.canary is None or of.canary in visible


def test_every_hardware_with_faults_has_a_canary():
    with_canary = {ROWS[design]["hardware"] for design, of in plans().items() if of.canary is not None}
    assert with_canary == {ROWS[design]["hardware"] for design in ROWS_WITH_FAULTS}


@pytest.mark.parametrize("design", ROWS)
def test_marks_and_keys_are_declared(design):
    of, row = plan_of(design), ROWS[design]
    assert set(of.common_marks) <= set(row["marks"])
    rows_on_it = [other for other in ROWS.values() if other["hardware"] == row["hardware"]]
    known = {key for other in rows_on_it for key in other["assumptions"]}
    assert {alternatives.key for alternatives in of.alternatives} <= known


@pytest.mark.parametrize("design", ROWS)
def test_settings_are_accepted(design):
    of = plan_of(design)
    lists = {of.short_run_settings, of.overflow_settings, *(campaign.settings for campaign in of.campaigns)}
    for settings in lists:
        workload = ds.workloads(design)[0]
        short = workload.small | {"ops": 1}
        done = ds.run(
            design=design, workload=workload.name, machine="tiny", ops=short.pop("ops"), set=settings,
            workload_args=short, guest_output=_ignore,
        )  # fmt: skip
        assert done.guest_exit_code == 0


def _ignore(*_):
    pass


def test_designs_that_share_an_assumption_are_measured_together():
    shared = measurements()["background-concurrency"]
    assert shared.designs == ("hercules", "tc", "kiln", "kiln-eadr", "proteus", "proteus-eadr")
    assert [point.split(".")[1] for point in shared.points[0]] == ["hercules", "tc", "kiln", "proteus"]
    assert measurements()["proteus-clean"].designs == ("proteus",)
    assert measurements()["hercules-commit-wait"].designs == ("opt", "hercules")


def test_a_sweep_draws_settings_by_seed(tmp_path):
    file = tmp_path / "campaign.toml"
    file.write_text(
        'name = "x"\n[[sweep]]\ndesigns = ["tc"]\nworkloads = ["btree"]\nthreads = [1, 2]\nseeds = 50\n'
        'set = { cores = 2 }\n[sweep.draw]\n"interconnect.core_to_controller_cycles" = { from = 3, to = 9 }\n'
        '"llc.replacement" = ["lru", "random"]\n'
    )
    campaign = read(str(file))
    drawn = [unit.scenario.settings for unit in campaign.units()]
    assert drawn == [unit.scenario.settings for unit in campaign.units()], "a run draws the same each time"
    assert drawn != [unit.scenario.settings for unit in campaign.units(1)], "another round draws others"
    assert {settings[0] for settings in drawn} == {"cores=2"}
    latencies = {int(settings[1].partition("=")[2]) for settings in drawn}
    assert latencies == set(range(3, 10))
    assert {settings[2] for settings in drawn} == {"llc.replacement=lru", "llc.replacement=random"}


def test_a_range_that_is_empty_is_refused(tmp_path):
    file = tmp_path / "campaign.toml"
    file.write_text(
        'name = "x"\n[[sweep]]\ndesigns = ["tc"]\nworkloads = ["btree"]\ndraw = { "cores" = { from = 4, to = 1 } }\n'
    )
    with pytest.raises(ds.ConfigError, match="cores: a range from 4 to 1 is empty"):
        read(str(file))


def test_a_sweep_takes_rows_with_settings_that_overflow(tmp_path):
    file = tmp_path / "campaign.toml"
    file.write_text(
        'name = "x"\n[[sweep]]\ndesigns = ["durable"]\nworkloads = ["btree"]\noverflow = true\n'
        'set = { cores = 2, "design.tc.entries" = 3 }\ndesign_set = { tc = { "design.tc.tx_id_bits" = 2 } }\n'
    )
    found = {unit.scenario.design: unit.scenario.settings for unit in read(str(file)).units()}
    assert found.keys() == {row["name"] for row in ds.designs() if plan_of(row["name"]).overflow_settings}
    assert {"hercules", "tc"} <= found.keys()
    # Settings of the design's test plan override those for all designs, and are overridden by those for the design.
    assert found["tc"] == ("cores=2", "design.tc.entries=8", "design.tc.tx_id_bits=2")
    assert found["hercules"][-5:] == plan_of("hercules").overflow_settings
