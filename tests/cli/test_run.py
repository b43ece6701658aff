"""`durasim run`: the document, its reproducibility, exit codes and streams."""

import json

import pytest

import durasim as ds
import elf_files
from pairing import rows_with

SMALL = {"machine": "tiny", "ops": 40, "workload_args": {"populate": 40}}
SMALL_OPTIONS = ["--machine", "tiny", "--ops", "40", "--arg", "populate=40"]
DESIGNS = rows_with("transactions")


def without_host(document):
    return {key: value for key, value in document.items() if key != "host"}


@pytest.mark.parametrize("workload", ["btree", "array-swap"])
@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_gives_the_documented_json(conforms, design, workload):
    result = ds.run(design=design, workload=workload, **SMALL)
    document = result.to_dict()
    conforms("run", document)
    assert (document["design"], document["workload"], document["machine"]) == (design, workload, "tiny")
    assert document["guest_exit_code"] == 0
    assert document["ops"] == 40
    assert document["tx"]["committed"] == 40
    written = document["pmem_write_bytes"]
    assert written["total"] == sum(size for cause, size in written.items() if cause != "total")
    roi = document["roi"]
    assert roi["ipc"] == pytest.approx(roi["instructions"] / roi["cycles"])
    assert 0 < roi["instructions"] < document["program"]["instructions"]
    latency = document["latency_ns"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["p999"] <= latency["max"]


def test_equal_runs_give_equal_bytes_except_host(program, tmp_path):
    documents = []
    for name in ("a.json", "b.json"):
        path = tmp_path / name
        result = program("run", "--design", "hercules", "--workload", "btree", *SMALL_OPTIONS, "--json", path)
        assert result.returncode == 0, result.stderr
        documents.append(json.loads(path.read_text()))
    first, second = (json.dumps(without_host(document)) for document in documents)
    assert first == second


def test_the_seed_changes_the_run():
    digests = {ds.run(workload="btree", seed=seed, **SMALL).digest for seed in (1, 2)}
    assert len(digests) == 2


def test_command_line_and_python_agree(program):
    result = program("run", "--workload", "btree", *SMALL_OPTIONS, "--json", "-")
    assert without_host(json.loads(result.stdout)) == without_host(ds.run(workload="btree", **SMALL).to_dict())


def test_a_parameter_can_be_set(program):
    parameter = "--set", "pmem.media.read_latency_ns=300"
    plain, slow = (
        json.loads(program("run", "--workload", "btree", *SMALL_OPTIONS, "--json", "-", *extra).stdout)
        for extra in ((), parameter)
    )
    assert slow["roi"]["cycles"] > plain["roi"]["cycles"]


def test_a_program_of_the_user_runs_and_its_streams_pass_through(program, hello, conforms, tmp_path):
    path = tmp_path / "result.json"
    result = program("run", "--elf", hello, "--quiet", "--json", path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "hello out\n", "hello err\n")
    document = json.loads(path.read_text())
    conforms("run", document)
    assert document["workload"] == "hello"


def test_with_the_document_on_standard_output_the_guest_speaks_on_standard_error(program, hello):
    result = program("run", "--elf", hello, "--json", "-")
    assert json.loads(result.stdout)["guest_exit_code"] == 0
    assert sorted(result.stderr.splitlines()) == ["hello err", "hello out"]


def test_the_exit_code_of_the_guest_is_a_verdict(program, elf, tmp_path):
    path = tmp_path / "result.json"
    result = program("run", "--elf", elf(elf_files.elf64(elf_files.exit_with(7))), "--json", path)
    assert result.returncode == 1
    assert json.loads(path.read_text())["guest_exit_code"] == 7


def test_guest_output_can_be_taken_in_python(hello):
    taken = []
    ds.run(elf=hello, guest_output=lambda stream, data: taken.append((stream, data)))
    assert b"".join(data for stream, data in taken if stream == "stdout") == b"hello out\n"
    assert b"".join(data for stream, data in taken if stream == "stderr") == b"hello err\n"


def test_an_exception_in_the_callback_comes_out(hello):
    def failing(_stream, _data):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        ds.run(elf=hello, guest_output=failing)


def test_a_pool_is_kept(tmp_path):
    pool = tmp_path / "pool"
    options = {"design": "hercules", "workload": "btree", **SMALL, "pool": pool}
    assert ds.run(**options).guest_exit_code == 0
    assert pool.stat().st_size > 0
    fresh = ds.run(**{**options, "pool": None})
    assert ds.run(**options).digest != fresh.digest


@pytest.mark.parametrize("design", ["opt", "hercules", "swl-flush"])
def test_a_run_stops_after_its_region(conforms, design):
    """The measurements are those of the whole run; the program has not ended."""
    whole, stopped, again = (
        ds.run(design=design, workload="btree", threads=2, **SMALL, guest_output=lambda *_: None, **options)
        for options in ({}, {"stop_after_roi": True}, {"stop_after_roi": True})
    )
    conforms("run", stopped.to_dict())
    assert stopped.guest_exit_code is None
    assert stopped.program.instructions < whole.program.instructions
    own = {"program", "digest", "guest_exit_code", "host", "provenance"}
    first, second = (
        {name: value for name, value in result.to_dict().items() if name not in own} for result in (whole, stopped)
    )
    assert first == second
    assert again.digest == stopped.digest


def test_a_program_without_a_region_runs_to_its_end(hello):
    assert ds.run(elf=hello, stop_after_roi=True, guest_output=lambda *_: None).guest_exit_code == 0


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--functional",), "a functional run goes to its end: leave stop_after_roi out"),
        (("--pool", "pool"), "a program that is stopped leaves no pool: leave pool or stop_after_roi out"),
    ],
)
def test_what_needs_the_end_of_a_program_does_not_stop_before(program, option, why):
    result = program("run", "--workload", "btree", *SMALL_OPTIONS, "--stop-after-roi", *option)
    assert result.returncode == 2
    assert result.stderr.endswith(f"{why}\n")
    assert result.stderr.count("\n") == 1


def test_the_progress_of_a_run_is_reported():
    reported = []
    options = {"workload": "array-swap", "machine": "tiny", "workload_args": {"populate": 20}}
    ds.run(**options, ops=20_000, guest_output=lambda *_: None, progress=lambda *said: reported.append(said))
    assert reported
    assert reported == sorted(reported)
    assert {total for _, total in reported} == {20_000}
    assert 0 < reported[-1][0] <= 20_000
