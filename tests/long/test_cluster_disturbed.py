"""Studies on a cluster that is disturbed: each point is stored once, with the result of this computer."""

import contextlib
import json
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest
import tomli_w

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))

from cluster_study import POINTS, check_complete, reference, rows, start, write_study
from dask_processes import Certificates, DaskProcesses, awaited
from in_process import SMALL, sweep

pytestmark = [pytest.mark.long, pytest.mark.minutes(3), pytest.mark.xdist_group("cluster")]
OPS = 1000
KILLS_ITS_PROCESS = """
import json, os
from durasim import _core
# Dask may load this twice in a process: each function keeps the one that it replaces.
def killing(text, *others, run=_core.run):
    request = json.loads(text)
    if request["design"] == "tc" and "llc.size_bytes=4096" in request["set"]:
        os._exit(1)
    return run(text, *others)
_core.run = killing
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return reference(tmp_path_factory.mktemp("reference"), OPS)


class Proxy:
    """A connection to the scheduler that can be cut."""

    def __init__(self, address):
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._target, self._listener, self._sockets = (host, int(port)), socket.create_server(("127.0.0.1", 0)), []
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                pair = (self._listener.accept()[0], socket.create_connection(self._target))
                self._sockets += pair
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    @staticmethod
    def _copy(one, other):
        # An end of one side is an end of the other.
        with one, other, contextlib.suppress(OSError, ValueError):
            while True:
                for ready in select.select([one, other], [], [])[0]:
                    data = ready.recv(2**16)
                    if not data:
                        return
                    (other if ready is one else one).sendall(data)

    def cut(self):
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def kill_a_worker(_dask, workers, _proxy):
    workers[0].send_signal(signal.SIGKILL)


def stop_a_worker_for_some_time(_dask, workers, _proxy):
    workers[0].send_signal(signal.SIGSTOP)
    time.sleep(5)
    workers[0].send_signal(signal.SIGCONT)


def cut_the_connection_of_a_worker(_dask, _workers, proxy):
    proxy.cut()


def restart_the_scheduler(dask, workers, _proxy):
    port = int(dask.address.rpartition(":")[2])
    dask.scheduler.send_signal(signal.SIGKILL)
    dask.scheduler.wait()
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
    dask.start_scheduler(port)
    dask.start_worker()


@pytest.mark.parametrize(
    "disturb",
    [kill_a_worker, stop_a_worker_for_some_time, cut_the_connection_of_a_worker, restart_the_scheduler],
)
def test_each_point_is_stored_once_whatever_happens_to_the_cluster(tmp_path, expected, disturb):
    file, store = write_study(tmp_path, OPS), tmp_path / "store.sqlite"
    with DaskProcesses(tmp_path) as dask:
        address = dask.start_scheduler()
        proxy = Proxy(address)
        workers = [dask.start_worker(address=proxy.address), dask.start_worker()]
        study = start(file, "--store", store, "--cluster", address, "--json", tmp_path / "out.json")
        awaited(lambda: rows(store) or study.poll() is not None)
        assert len(rows(store)) < POINTS
        disturb(dask, workers, proxy)
        check_complete(study, tmp_path, expected)


KINDS = {
    "crash": {"kind": "crash", "crash": {"points": 6, "faults": ["clean", "torn"]}},
    "shared population": {"shared_population": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_crashes_and_shared_populations_give_the_results_of_this_computer(tmp_path, kind):
    keys = SMALL | KINDS[kind] | {"designs": ["tc", "hercules"], "axes": {"llc.size_bytes": ["4KiB", "8KiB"]}}
    here = {point.key: point.digest for point in sweep(tmp_path / "here.sqlite", **keys).points}
    assert len(here) == 4
    (tmp_path / "study.toml").write_text(tomli_w.dumps(keys))
    with DaskProcesses(tmp_path) as dask:
        address = dask.start_scheduler()
        dask.start_worker()
        dask.start_worker()
        words = ("--store", tmp_path / "store.sqlite", "--cluster", address, "--json", tmp_path / "out.json")
        study = start(tmp_path / "study.toml", *words)
        _, messages = study.communicate(timeout=900)
    assert (study.returncode, messages) == (0, "")
    document = json.loads((tmp_path / "out.json").read_text())
    assert (document["simulated"], document["failed"]) == (4, 0)
    assert {point["key"]: point["digest"] for point in document["points"]} == here
    assert dict(rows(tmp_path / "store.sqlite")) == here


def test_a_scheduler_of_another_authority_gets_nothing(tmp_path):
    """Neither side accepts the certificates of the other."""
    file = write_study(tmp_path, 4)
    ours, others = (Certificates.made(tmp_path / name) for name in ("ours", "others"))
    with DaskProcesses(tmp_path, *others.options(), protocol="tls") as dask:
        address = dask.start_scheduler()
        dask.start_worker()
        study = start(file, "--no-store", "--cluster", address, **ours.environment())
        _, messages = study.communicate(timeout=300)
    assert (study.returncode, messages.count("\n")) == (4, 1), messages
    assert f"{address}: no Dask scheduler answers within 10 seconds" in messages


def test_a_point_that_kills_three_workers_is_listed_and_others_go_on(tmp_path, expected):
    file, store = write_study(tmp_path, OPS), tmp_path / "store.sqlite"
    (tmp_path / "kills.py").write_text(KILLS_ITS_PROCESS)
    with DaskProcesses(tmp_path) as dask:
        address = dask.start_scheduler()
        dask.start_worker("--nanny", "--preload", str(tmp_path / "kills.py"))
        study = start(file, "--store", store, "--cluster", address, "--json", tmp_path / "out.json")
        study.communicate(timeout=900)
        document = json.loads((tmp_path / "out.json").read_text())
    assert study.returncode == 1
    assert (document["simulated"], document["failed"]) == (POINTS - 2, 2)
    failed = [point for point in document["points"] if point["state"] == "failed"]
    assert {point["error"] for point in failed} == {"its worker process ended 3 times"}
    assert all(point["command"].startswith("durasim run --design tc") for point in failed)
    assert set(rows(store)) == {(key, digest) for key, digest in expected.items() if key in dict(rows(store))}
    assert len(rows(store)) == POINTS - 2
