"""The document of a run records its inputs: requests give equal bytes if and only if they are equal."""

import copy
import json
import pickle

import pytest

import durasim as ds
import samples

SMALL = {"design": "hercules", "workload": "btree", "machine": "tiny", "ops": 10}


def run(**changes):
    options = SMALL | changes
    options["workload_args"] = {"populate": 12} | options.get("workload_args", {})
    return ds.run(guest_output=lambda *_: None, **options)


def without_host(result):
    return {name: value for name, value in result.to_dict().items() if name != "host"}


def test_equal_requests_give_equal_documents(tmp_path):
    first, second = run(), run()
    assert without_host(first) == without_host(second)
    assert ds.diff(first, second).configuration == ()
    # The path of a result is not part of it.
    assert without_host(run(snapshot_at=0, snapshot=tmp_path / "a")) == without_host(first)
    assert str(tmp_path) not in run(snapshot_at=0, snapshot=tmp_path / "b").to_json()


def test_arguments_have_their_defaults_filled_in():
    said = run(workload_args={"no-check": True}).provenance
    assert said.workload_args["populate"] == 12
    assert said.workload_args["no-check"] is True
    assert said.workload_args["node-bytes"] == 5440
    assert not {"ops", "seed", "threads"} & said.workload_args.keys()
    assert said.elf_args[0] == "run"
    assert said.scale == "paper"
    assert said.guest_compiler
    assert len(said.elf_hash) == 64
    assert len(said.durasim_build) == 32


def test_every_difference_of_two_requests_is_one_of_the_documents():
    same = run()
    for changes, keys in [
        ({"workload_args": {"node-bytes": 128}}, {"provenance.workload_args.node-bytes", "provenance.elf_args"}),
        ({"seed": 2}, {"seed", "provenance.elf_args"}),
        ({"fast_forward": 0}, {"provenance.fast_forward", "start.kind", "start.mark", "start.warm"}),
        ({"max_instructions": 10_000_000}, {"provenance.max_instructions"}),
    ]:
        differing = {change.key for change in ds.diff(same, run(**changes)).configuration}
        assert differing == keys


def test_a_run_from_a_snapshot_names_it(tmp_path):
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        run(snapshot_at=0, snapshot=path, fast_forward="0")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    results = [run(from_=path) for path in paths]
    assert without_host(results[0]) == without_host(results[1])
    assert len(results[0].provenance.snapshot_hash) == 64
    assert run().provenance.snapshot_hash is None


def test_a_run_on_a_used_pool_names_it(tmp_path):
    pool = tmp_path / "pool"
    assert run(pool=pool).provenance.pool_hash is None
    assert run(pool=pool).provenance.pool_hash is not None


def test_a_program_has_its_arguments(hello):
    said = ds.run(elf=hello, args=["a", "b"], env=["HOME=/"], guest_output=lambda *_: None).provenance
    assert (said.elf_args, said.env) == (("a", "b"), ("HOME=/",))
    assert (said.workload_args, said.guest_compiler) == ({}, None)


def test_results_can_be_pickled_and_copied():
    result = ds.RunResult.from_dict(samples.RUN)
    for same in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):  # noqa: S301 - our own
        assert same == result
        assert same.to_json() == result.to_json()
    verdict = ds.crash(
        design="tc", workload="array-swap", machine="tiny", ops=4, points=5, workload_args={"populate": 4}
    )
    assert copy.deepcopy(pickle.loads(pickle.dumps(verdict))) == verdict  # noqa: S301 - our own bytes


def test_documents_of_every_kind_are_read_back(program, tmp_path):
    path = tmp_path / "document.json"
    small = ["--machine", "tiny", "--ops", "5", "--arg", "populate=5"]
    (tmp_path / "campaign.toml").write_text(
        'name = "short"\n[[sweep]]\ndesigns = ["tc"]\nworkloads = ["array-swap"]\nops = 4\npoints = 5\n'
    )
    (tmp_path / "run.json").write_text(ds.RunResult.from_dict(samples.RUN).to_json())
    (tmp_path / "stalled.json").write_text(json.dumps(samples.stalled({"front_end": 9})))
    for words, kind in [
        (["run", "--workload", "array-swap", *small], ds.RunResult),
        (["crash", "--design", "tc", "--workload", "array-swap", *small, "--points", "5"], ds.CrashResult),
        (["compare", "--designs", "opt,tc", "--workloads", "array-swap", *small], ds.Comparison),
        (["diff", tmp_path / "run.json", tmp_path / "run.json"], ds.Difference),
        (["explain", tmp_path / "stalled.json", tmp_path / "stalled.json"], ds.Explanation),
        (["campaign", tmp_path / "campaign.toml"], ds.CampaignResult),
        (["mutation", "--design", "tc", "--mutant", "copying-entries-lost"], dict),
    ]:
        result = program(*words, "--json", path)
        assert result.returncode == 0, result.stderr
        loaded = ds.load(path)
        assert type(loaded) is kind
        assert (loaded if isinstance(loaded, dict) else loaded.to_dict()) == json.loads(path.read_text())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": "durasim-run/2"}', "a document durasim-run/2; this version reads durasim-run/5"),
        ("[]", "without a schema"),
        ('{"schema": 3}', "without a schema"),
        ('{"schema": "durasim-run/5"}', "lacks"),
        ("{", "not JSON"),
    ],
)
def test_other_documents_are_refused(tmp_path, text, words):
    path = tmp_path / "document.json"
    path.write_text(text)
    with pytest.raises(ds.ConfigError, match=words) as refused:
        ds.load(path)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_cannot_be_read(tmp_path):
    with pytest.raises(ds.HostIoError, match="No such file"):
        ds.load(tmp_path / "missing.json")
