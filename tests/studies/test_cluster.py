"""Studies on a Dask scheduler: equal results, and one sentence for each wrong `--cluster`."""

import json
import socket
from pathlib import Path

import jsonschema
import pytest
from cluster_study import POINTS, check_complete, reference, rows, start, write_study
from dask_processes import Certificates, DaskProcesses, awaited
from in_process import SMALL, InProcess, sweep

import command_line
import durasim as ds
from durasim import _core
from durasim.documents.toml_files import schema_named
from durasim.errors import HostIoError
from durasim.studies import cluster
from durasim.studies.contents import Contents, check, hashes_of
from durasim.studies.executor import Answer
from durasim.studies.received import ContentFolder
from durasim.studies.study import study_of
from durasim.studies.study_run import StudyRun
from durasim.studies.tasks import simulate, task_text

OTHER_BUILD = "from durasim import _core\n_core.__build__ = '0123456789abcdef'\n"


def test_a_cluster_gives_the_results_of_this_computer_and_refuses_another_build(tmp_path):
    """All connections are encrypted, with temporary certificates."""
    file, store = write_study(tmp_path, 4), tmp_path / "store.sqlite"
    certificates = Certificates.made(tmp_path / "tls")
    ours = certificates.environment()
    with DaskProcesses(tmp_path, *certificates.options(), protocol="tls") as dask:
        address = dask.start_scheduler()
        assert address.startswith("tls://")
        dask.start_worker()
        dask.start_worker()
        study = start(file, "--store", store, "--cluster", address, "--json", tmp_path / "out.json", **ours)
        assert check_complete(study, tmp_path, reference(tmp_path, 4)) == ""
        (tmp_path / "other.py").write_text(OTHER_BUILD)
        other = dask.start_worker("--preload", str(tmp_path / "other.py"))
        awaited(lambda: "Registered to" in (tmp_path / "worker-3.log").read_text())
        study = start(file, "--no-store", "--cluster", address, **ours)
        _, messages = study.communicate(timeout=300)
        assert (study.returncode, messages.count("\n")) == (4, 1), messages
        assert f"the worker has another build of durasim (0123456789abcdef, here {_core.__build__})" in messages
        assert other.poll() is None
    assert len(rows(store)) == POINTS


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--cluster", "slrum"], 2, "cluster: 'slrum' is unknown (allowed: tls://HOST:PORT, tcp://HOST:PORT, slurm,"),
        (["--cluster", "tls://host"], 2, "cluster: 'tls://host' is unknown"),
        (["--cluster", "tcp://192.0.2.1:8786"], 2, "use tls://, or add --insecure on a network that you trust"),
        (["--cluster", "tcp://localhost.example:8786"], 2, "would send programs and results unencrypted"),
        (["--insecure"], 2, "insecure: applies only to --cluster tcp://HOST:PORT"),
        (["--cluster", "slurm"], 2, "jobs: is required with --cluster slurm"),
        (["--cluster", "tls://127.0.0.1:1"], 2, "set DASK_DISTRIBUTED__COMM__TLS__CA_FILE to a file"),
        (["--cluster", "slurm", "--jobs", "1"], 4, "slurm: there is no command sbatch here"),
        (["--cluster", "slurm", "--plan"], 2, "cluster: is for simulating: leave it out with --plan"),
        (["--wait", "5"], 2, "wait: applies only to --cluster"),
        (["--cluster", "slurm", "--jobs", "1", "--wait", "0"], 2, "wait: 0 is not above 0 minutes"),
    ],
)
def test_a_wrong_cluster_is_refused_with_one_sentence(tmp_path, words, code, sentence):
    ran = command_line.run("sweep", write_study(tmp_path, 4), "--no-store", *words)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (code, "", 1), ran.stderr
    assert sentence in ran.stderr


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
    named = cluster.cluster_named(address, None, is_insecure=False)
    with pytest.raises(HostIoError, match=f"{address}: no Dask scheduler answers"):
        named.connect()


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "_PACKAGES", ("no_such_package",))
    with pytest.raises(
        ds.ConfigError, match=r"cluster: requires Dask: install it with `pip install 'durasim\[cluster\]'"
    ):
        cluster.cluster_named("tcp://127.0.0.1:8786", None, is_insecure=False)
    assert cluster.cluster_named("local", 2, is_insecure=False) is None
    assert cluster.cluster_named(None, 2, is_insecure=False) is None


def test_tasks_and_answers_have_the_form_of_their_schemas():
    tasks = []

    class Noting(InProcess):
        def submit(self, number, task):
            tasks.append(json.loads(task))
            super().submit(number, task)

    sweep(executor=Noting())
    sweep(executor=Noting(), kind="crash", crash={"points": 3, "faults": ["clean"]})
    assert [task["kind"] for task in tasks] == ["run", "crash"]
    validator = jsonschema.Draft202012Validator(schema_named("task"))
    for task in tasks:
        validator.validate(task)
        assert not validator.is_valid(task | {"more": 1})
        assert not validator.is_valid(task | {"request": task["request"] | {"seed": "1"}})
        assert not validator.is_valid(task | {"request": task["request"] | {"no_such_field": 1}})
    answers = jsonschema.Draft202012Validator(schema_named("answer"))
    answers.validate(json.loads(simulate(json.dumps(tasks[0]))))
    answers.validate(json.loads(simulate(task_text("run", {}))))
    assert not answers.is_valid({"document": {}, "error": "both", "seconds": 1.0})


def test_a_request_that_writes_is_refused():
    with pytest.raises(ds.ConfigError, match="root_write: is written on the computer that simulates: leave --cluster"):
        check({"root": "/data", "root_write": True})
    check({"root": "/data", "root_write": False})


@pytest.fixture
def request_with_files(tmp_path):
    folder = tmp_path / "root"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "input").write_bytes(b"input")
    (folder / "data" / "input").chmod(0o750)
    (folder / "link").symlink_to("data/input")
    (tmp_path / "program").write_bytes(b"program")
    (tmp_path / "snapshot").write_bytes(b"snapshot")
    return {
        "elf": str(tmp_path / "program"), "machine": "tiny", "from": str(tmp_path / "snapshot"), "root": str(folder),
    }  # fmt: skip


def send(contents, received, hashes):
    for content in received.missing(hashes):
        received.append(content, "a", 0, Path(contents.paths[content]).read_bytes())
        received.finish(content, "a")


def test_files_and_folders_arrive_with_their_names_contents_and_rights(tmp_path, request_with_files):
    contents, received = Contents(), ContentFolder(tmp_path / "worker")
    files = contents.of(request_with_files)
    assert "machine" not in files
    assert len(received.missing(hashes_of(files))) == 3
    send(contents, received, hashes_of(files))
    assert received.missing(hashes_of(files)) == []
    placed = received.placed(request_with_files, files)
    assert Path(placed["elf"]).name == "program"
    assert Path(placed["elf"]).read_bytes() == b"program"
    assert Path(placed["from"]).read_bytes() == b"snapshot"
    root = Path(placed["root"])
    assert (root / "link").readlink() == Path("data/input")
    assert (root / "data" / "input").stat().st_mode & 0o777 == 0o750
    assert (root / "link").read_bytes() == b"input"
    assert placed == received.placed(request_with_files, files)


def test_a_file_that_changed_in_transit_is_refused(tmp_path, request_with_files):
    contents, received = Contents(), ContentFolder(tmp_path / "worker")
    content = contents.of(request_with_files)["elf"]
    received.append(content, "a", 0, b"programm")
    received.append(content, "b", 0, b"program")
    with pytest.raises(HostIoError, match="arrived with other contents"):
        received.finish(content, "a")
    assert received.missing({content}) == [content]
    received.finish(content, "b")
    assert received.missing({content}) == []


def test_a_folder_cannot_leave_the_folder_of_its_task(tmp_path):
    received = ContentFolder(tmp_path / "worker")
    for entries in (
        [{"path": "../outside", "rights": 0o755}],
        [{"path": "link", "link": str(tmp_path)}, {"path": "link/outside", "rights": 0o755}],
    ):
        with pytest.raises(HostIoError, match="leaves the folder of its task"):
            received.placed({"root": "/data"}, {"root": entries})
    twice = [{"path": "link", "link": str(tmp_path / "outside")}, {"path": "link", "rights": 0o755}]
    with pytest.raises(HostIoError, match="is in the folder of its task twice"):
        received.placed({"root": "/data"}, {"root": twice})
    assert not (tmp_path / "outside").exists()


def test_points_that_are_given_up_fail_and_blameless_ones_are_submitted_again():
    class Executor(InProcess):
        def answers(self):
            number, task = self._waiting.popleft()
            self._attempts[number] = self._attempts.get(number, 0) + 1
            if number == 0:
                return [Answer(number, None, given_up="its worker process ended 3 times")]
            if self._attempts[number] < 5:
                return [Answer(number, None, is_blameless=True)]
            return [Answer(number, simulate(task))]

    points = sweep(executor=Executor(), axes={"seed": [1, 2]}).points
    assert [(point.state, point.error) for point in points] == [
        ("failed", "its worker process ended 3 times"), ("simulated", None),
    ]  # fmt: skip


def test_the_longest_points_are_submitted_first():
    executor = InProcess(capacity=1)
    keys = {name: value for name, value in SMALL.items() if name != "ops"}
    study = study_of({**keys, "axes": {"ops": [4, 40, 8]}}, "")
    StudyRun(study, None, lambda *_: None, check=check).run(lambda: executor)
    assert executor.simulated == [1, 2, 0]
