"""`--monitor`: the states that the page gets and who may read them. Results and exit codes do not depend on it."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys

import pytest

from durasim.monitor.server import PAGE
from durasim.monitor.watched import Sent, Watched
from durasim.watch import FAILED, REUSED, SIMULATED, Finished

STUDY = """
name = "small"
designs = ["hercules", "tc"]
workloads = ["array-swap"]
machine = "tiny"
ops = 4
args = { populate = 8 }
[axes]
seed = [1, 2]
"""
CAMPAIGN = """
name = "small"
[[sweep]]
designs = ["tc"]
workloads = ["array-swap"]
seeds = 2
ops = 4
points = 4
args = { populate = 8 }
"""
ENDLESS = """
name = "endless"
designs = ["opt"]
workloads = ["array-swap"]
machine = "tiny"
ops = 100000000
[axes]
seed = [1, 2]
"""


class Monitored:
    """A command with `--monitor 0` in a process of its own, and requests to its server."""

    def __init__(self, *words):
        command = [sys.executable, "-m", "durasim", *map(str, words), "--monitor", "0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        said = self.process.stderr.readline()
        found = re.fullmatch(r"durasim: the monitor is at http://127\.0\.0\.1:(\d+)/#([\w-]{22})\n", said)
        assert found, said + self.process.stderr.read()
        self.port, self.token = int(found[1]), found[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    @contextlib.contextmanager
    def ask(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            yield connection.getresponse()

    def cookie(self):
        with self.ask("/session", "POST", json.dumps({"token": self.token})) as answer:
            assert answer.status == 200
            return answer.headers["Set-Cookie"].partition(";")[0]

    def states(self, answer):
        """Yields the states up to the end of the command."""
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/event-stream"
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))

    def refused(self, path, status, words, **request):
        with self.ask(path, **request) as answer:
            assert answer.status == status
            assert words in json.loads(answer.read())["problem"]


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def endless(tmp_path):
    path = tmp_path / "endless.toml"
    path.write_text(ENDLESS)
    return path


def test_a_study_is_followed_to_its_end_and_has_the_same_bytes(program, study, tmp_path):
    store, plain, watched = (tmp_path / name for name in ("store.sqlite", "plain.json", "watched.json"))
    words = ("sweep", study, "--store", store, "--jobs", "1")
    with Monitored(*words, "--json", tmp_path / "first.json") as command:
        with command.ask("/state", Cookie=command.cookie()) as answer:
            states = list(command.states(answer))
        shown, said = command.process.communicate(timeout=60)
    assert (command.process.returncode, said) == (0, "")
    last = states[-1]
    assert (last["ended"], last["done"], last["total"], last["states"]) == ("finished", 4, 4, "ssss")
    assert [state["done"] for state in states] == sorted(state["done"] for state in states)
    names = [name for state in states for name in state["names"]]
    assert names[0] == "workload=array-swap design=hercules machine=tiny seed=1"
    assert len(names) == 4
    assert last["mips"] > 0
    assert last["recent"][0]["counters"]["throughput_ops_per_us"] > 0
    assert not last["failures"]
    assert program(*words, "--json", plain).returncode == 0
    again = program(*words, "--json", watched, "--monitor", "0")
    assert again.returncode == 0
    assert watched.read_bytes() == plain.read_bytes()
    first = json.loads((tmp_path / "first.json").read_text())
    assert [point["digest"] for point in first["points"]] == [
        point["digest"] for point in json.loads(plain.read_text())["points"]
    ]
    assert "4 simulated" in shown


def test_a_campaign_is_followed_to_its_end(tmp_path):
    path, result = tmp_path / "campaign.toml", tmp_path / "result.json"
    path.write_text(CAMPAIGN)
    with Monitored("campaign", path, "--store", tmp_path / "store.sqlite", "--json", result) as command:
        with command.ask("/state", Cookie=command.cookie()) as answer:
            *_, last = command.states(answer)
        command.process.communicate(timeout=60)
    assert command.process.returncode == 0
    document = json.loads(result.read_text())
    assert (last["done"], last["total"], last["unit"], last["states"]) == (2, 2, "runs", "ss")
    assert last["sums"]["trials"] == document["trials"]
    assert last["sums"]["violations"] == 0


def test_the_monitor_answers_only_its_user_and_a_closed_browser_changes_nothing(endless, tmp_path):
    with Monitored("sweep", endless, "--store", tmp_path / "store.sqlite", "--jobs", "2") as command:
        cookie, here = command.cookie(), f"127.0.0.1:{command.port}"
        command.refused("/state", 401, "open the address that durasim has printed")
        command.refused("/state", 401, "open the address", Cookie=f"{cookie.partition('=')[0]}=wrong")
        command.refused("/session", 401, "the token is not", method="POST", body='{"token": "wrong"}')
        for other in ("evil.example", f"evil.example:{command.port}", f"127.0.0.1:{command.port + 1}"):
            command.refused("/state", 403, "the Host", Cookie=cookie, Host=other)
            command.refused("/", 403, "the Origin", Origin=f"http://{other}")
        command.refused("/state", 403, "the Origin", Cookie=cookie, Origin=f"https://{here}")
        command.refused("/watched.py", 404, "nothing at this address", Cookie=cookie)
        for name in ("", "index.html", "monitor.js", "monitor.css", "icon.svg"):
            with command.ask(f"/{name}") as answer:
                assert answer.read() == (PAGE / (name or "index.html")).read_bytes()
                assert answer.headers["Content-Security-Policy"].startswith("default-src 'self';")
        for _ in range(2):
            # A browser is closed in the middle; a second one has the state from the beginning.
            with command.ask("/state", Cookie=command.cookie()) as answer:
                running = next(state for state in command.states(answer) if state["states"] == "rr")
            assert len(running["running"]) == 2
            assert running["left_s"] is None
        command.process.send_signal(signal.SIGINT)
        shown, said = command.process.communicate(timeout=60)
    assert command.process.returncode == 128 + signal.SIGINT
    assert shown == ""
    assert said.startswith("durasim: interrupted; 0 of 2 points were done")
    assert said.count("\n") == 1


def test_ctrl_c_reaches_an_open_page(endless, tmp_path):
    with Monitored("sweep", endless, "--store", tmp_path / "store.sqlite", "--jobs", "1") as command:
        with command.ask("/state", Cookie=command.cookie()) as answer:
            states = command.states(answer)
            next(state for state in states if "r" in state["states"])
            command.process.send_signal(signal.SIGINT)
            *_, last = states
        command.process.communicate(timeout=60)
    assert last["ended"] == "interrupted"
    assert command.process.returncode == 128 + signal.SIGINT


def test_the_option_is_refused_with_a_sentence(refused, study):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused(["sweep", study, "--no-store", "--monitor", port], 4, f"port {port}", "Address already in use")
    refused(["sweep", study, "--plan", "--monitor", "0"], 2, "monitor", "leave it out with --plan")
    words = ["campaign", "--random", "--design", "opt", "--replay", "1:0", "--monitor", "0"]
    refused(words, 2, "monitor", "cannot be combined with --replay")


def test_commands_without_a_monitor_load_no_server():
    names = ("sweep_command", "crash_commands", "reproduce_command", "sensitivity_command")
    imports = "; ".join(f"import durasim.cli.{name}" for name in names)
    code = (
        f"{imports}; import sys; print([name for name in sys.modules if 'tornado' in name or 'local_server' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def observed():
    """A state with a clock, whose reading is the only element of the list."""
    clock = [0.0]
    return Watched("durasim sweep", lambda: clock[0]), clock


def test_the_time_left_is_that_of_the_rate_of_simulated_points():
    watched, clock = observed()
    watched.begin_study("study", "points")
    watched.add([f"seed={seed}" for seed in range(5)])
    watched.finish(0, Finished(REUSED, 9.0, "command", instructions=8e6))
    watched.count(1, 5)
    assert watched.document(Sent())[0]["left_s"] is None
    clock[0] = 10.0
    watched.begin(1)
    clock[0] = 14.0
    watched.finish(1, Finished(SIMULATED, 4.0, "command", instructions=8e6))
    watched.count(2, 5)
    document, sent = watched.document(Sent())
    assert (document["left_s"], document["mips"], document["elapsed_s"]) == (12.0, 2.0, 14.0)
    assert document["names"] == ["seed=0", "seed=1", "seed=2", "seed=3", "seed=4"]
    assert watched.document(sent)[0]["names"] == []
    watched.begin_study("next", "runs", 60.0)
    clock[0] = 24.0
    document, sent = watched.document(sent)
    assert (document["left_s"], document["study"], document["states"], sent.names) == (50.0, 1, "", 0)


def test_states_say_what_became_of_each_point():
    watched, _ = observed()
    watched.begin_study("study", "points")
    watched.add(["a", "b", "c", "d", "e"])
    watched.begin(0)
    watched.begin(1)
    watched.put_back(1)
    watched.finish(2, Finished(FAILED, 0.0, "command", problem="its worker process was killed"))
    watched.finish(3, Finished(SIMULATED, 1.0, "command", {"violations": 2}, sums={"violations": 2}))
    watched.finish(4, Finished(SIMULATED, 1.0, "command", {"violations": 0}, sums={"violations": 0}))
    document, _ = watched.document(Sent())
    assert document["states"] == "rwfvs"
    assert [failure["name"] for failure in document["failures"]] == ["c", "d"]
    assert [point["name"] for point in document["recent"]] == ["e", "d", "c"]
    assert document["sums"] == {"violations": 2}
