"""`--set`: parameters of other designs, misspelled names, sizes with units."""

import pytest

import durasim as ds
from durasim.runs import comparison, settings
from durasim.runs.scenario import Scenario

RUN = ["run", "--workload", "btree", "--machine", "tiny", "--ops", "20", "--arg", "populate=20"]


def test_a_parameter_of_another_design_is_refused(refused):
    said = refused([*RUN, "--design", "hercules", "--set", "design.tc.entries=4"], 2, "design.tc.entries", "hercules")
    assert "design.hercules takes" in said
    assert "ewpq_entries" in said
    refused([*RUN, "--set", "design.tc.entries=4"], 2, "has no effect on opt", "no parameters")
    crash = ["crash", "--design", "kiln", *RUN[1:], "--set", "design.hoop.search_cycles=4"]
    refused(crash, 2, "is a parameter of hoop and has no effect on kiln")


@pytest.mark.parametrize("name", [row["name"] for row in ds.designs()])
def test_each_design_refuses_the_parameters_of_others(name):
    rows = {row["name"]: row for row in ds.designs()}
    for other in rows.values():
        for parameter in ds.describe_design(other["name"])["parameters"][:1]:
            setting = f"design.{other['hardware']}.{parameter['name']}={parameter['default']}"
            scenario = Scenario(design=name, workload="btree", settings=(setting,))
            if other["hardware"] == rows[name]["hardware"]:
                settings.check(scenario.settings, name, rows[name]["hardware"])
            else:
                with pytest.raises(ds.ConfigError, match="has no effect on"):
                    settings.check(scenario.settings, name, rows[name]["hardware"])


def test_a_comparison_sets_it_under_the_designs_that_have_it(refused):
    sets = ["design.tc.entries=8", "llc.size_bytes=8KiB"]
    scenarios = comparison.scenarios(["opt", "tc"], ["btree"], machine="tiny", set=sets)
    assert [scenario.settings for scenario in scenarios] == [("llc.size_bytes=8KiB",), tuple(sets)]
    options = ["compare", "--designs", "opt,hercules", "--workloads", "btree", "--machine", "tiny"]
    refused([*options, "--set", "design.tc.entries=8"], 2, "design.tc.entries", "not among the designs")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("hercules.ewpq_entries", "design.hercules.ewpq_entries"),
        ("design.hercules.ewpq_entrys", "design.hercules.ewpq_entries"),
        ("design.hercles.ewpq_entries", "'hercules'"),
        ("llc.size_byte", "llc.size_bytes"),
        ("media.write_latency_ns", None),
    ],
)
def test_names_that_are_nearly_right(refused, given, meant):
    said = refused([*RUN, "--design", "hercules", "--set", f"{given}=4"], 2, given.split(".", maxsplit=1)[0])
    if meant is not None:
        assert f"did you mean {meant}?" in said


def test_sizes_have_units(refused):
    sizes = ["llc.size_bytes=8KiB", "pmem.interleave_bytes = 4 KiB", "llc.size_bytes=8192", "pmem.capacity_mib=64"]
    expected = ["llc.size_bytes=8192", "pmem.interleave_bytes =4096", "llc.size_bytes=8192", "pmem.capacity_mib=64"]
    assert settings.in_bytes(sizes) == expected
    assert settings.in_bytes(["design.hoop.block_bytes=1MiB"]) == ["design.hoop.block_bytes=1048576"]
    scenario = Scenario(workload="btree", machine="tiny", settings=("llc.size_bytes=8KiB",))
    assert scenario.request()["set"] == ["llc.size_bytes=8192"]
    for unit in ("MB", "kB", "K", "M", "mib"):
        refused([*RUN, "--set", f"llc.size_bytes=8{unit}"], 2, "llc.size_bytes", f"8{unit}", "KiB, MiB or GiB")


def test_campaigns_set_a_parameter_under_the_designs_that_have_it(tmp_path):
    from durasim.crashes import campaign_file  # noqa: PLC0415

    path = tmp_path / "campaign.toml"
    text = """name = "sets"
[[sweep]]
designs = ["tc", "hercules"]
workloads = ["array-swap"]
[sweep.set]
"llc.size_bytes" = 8192
"{parameter}" = 8
"""
    path.write_text(text.format(parameter="design.tc.entries"))
    units = list(campaign_file.read(str(path)).units(0))
    found = {unit.scenario.design: unit.scenario.settings for unit in units}
    assert found == {"tc": ("llc.size_bytes=8192", "design.tc.entries=8"), "hercules": ("llc.size_bytes=8192",)}
    path.write_text(text.format(parameter="design.kiln.fifo_entries"))
    with pytest.raises(ds.ConfigError, match="not among the designs"):
        list(campaign_file.read(str(path)).units(0))


def test_words_of_different_locks_share_no_line_where_lines_are_locked(refused):
    run = ["crash", "--workload", "false-sharing", "--machine", "tiny", "--threads", "4", "--arg", "shared-lines=true"]
    for design, unit in (("proteus", "blocks of 32 bytes"), ("kiln", "lines"), ("lad", "lines"), ("lad-llc", "lines")):
        refused([*run, "--design", design], 2, "shared-lines", design, unit, "--control")
    for more in ({"control": True}, {"threads": 1}, {"design": "tc"}, {"workload_args": (("shared-lines", "false"),)}):
        fields = {"design": "proteus", "threads": 4, "workload_args": (("shared-lines", "true"),)}
        Scenario(workload="false-sharing", machine="tiny", **(fields | more)).check_promise()
