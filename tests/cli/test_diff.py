"""`durasim diff`."""

import json

import pytest

import durasim as ds
import samples


@pytest.fixture
def pair(tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    a.write_text(json.dumps(samples.RUN))
    changed = samples.run(
        design="hercules", seed=2, throughput_ops_per_us=7.5, roi__cycles=2200, pmem_write_bytes__log=64,
        pmem_write_bytes__total=704, configuration__pmem={"media": {"read_latency_ns": 300}},
    )  # fmt: skip
    b.write_text(json.dumps(changed))
    return a, b


def test_keys_that_differ_then_the_largest_change_first(program, conforms, pair):
    result = program("diff", *pair, "--json", "-")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    conforms("diff", document)
    assert [change["key"] for change in document["configuration"]] == ["design", "seed", "pmem.media.read_latency_ns"]
    assert [change["key"] for change in document["measures"]][:4] == [
        "pmem_write_bytes.log",
        "throughput_ops_per_us",
        "roi.cycles",
        "pmem_write_bytes.total",
    ]
    assert document["measures"][0]["ratio"] is None
    assert document["measures"][1]["ratio"] == 0.5


def test_the_table_names_both_values(program, pair):
    result = program("diff", *pair)
    assert result.returncode == 0
    assert "hercules" in result.stdout
    assert result.stdout.index("design") < result.stdout.index("pmem_write_bytes.log")


def test_aborts_of_hardware_transactions_are_compared_by_cause():
    causes = dict.fromkeys(("conflict", "capacity", "explicit", "nested", "trap", "other"), 0)
    before, after = (
        ds.RunResult.from_dict(samples.run(tx__aborted_by=causes | {"conflict": number})) for number in (4, 8)
    )
    changed = [change for change in ds.diff(before, after).measures if change.a != change.b]
    assert [(change.key, change.a, change.b, change.ratio) for change in changed] == [
        ("tx.aborted_by.conflict", 4, 8, 2)
    ]


def test_a_run_that_was_stopped_is_compared_with_a_whole_one():
    whole, stopped = (ds.RunResult.from_dict(samples.run(guest_exit_code=code)) for code in (0, None))
    assert all(change.a == change.b for change in ds.diff(whole, stopped).measures)


def test_a_result_does_not_differ_from_itself():
    result = ds.RunResult.from_dict(samples.RUN)
    difference = ds.diff(result, result)
    assert difference.configuration == ()
    assert {measure.ratio for measure in difference.measures} <= {1.0, None}


@pytest.mark.parametrize(
    ("text", "exit_code", "word"),
    [
        ("{", 2, "not JSON"),
        ("[]", 2, "object"),
        ("{}", 2, "lacks"),
        (None, 4, "No such file"),
        (b"\xff\xfe", 2, "text"),
    ],
)
def test_other_files_are_refused(refused, tmp_path, pair, text, exit_code, word):
    path = tmp_path / "other.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(["diff", pair[0], path], exit_code, word)


def test_one_file_is_too_few(refused, pair):
    refused(["diff", pair[0]], 2, "B.JSON")
