"""`durasim explore`: what the server answers and refuses, the documents, the reasons, and which sources are read."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tornado.httpserver

import compiled
from durasim import ConfigError
from durasim.crashes.crash_request import options_of, prepare_crash
from durasim.explore import explored_run, reasons, server, sources
from durasim.local_server import access, handlers
from durasim.runs.scenario import Scenario

SOURCE = Path(__file__).resolve().parents[1] / "crash" / "causes.c"
WORDS = ("--design", "opt", "--machine", "tiny", "--check", "check missing-clean")
LINE = 64


@pytest.fixture(scope="session")
def elf():
    return compiled.program(SOURCE)


@pytest.fixture(scope="session")
def prepared(elf):
    scenario = Scenario(design="opt", machine="tiny", elf=str(elf), args=("run", "missing-clean"))
    return prepare_crash(scenario, options_of({"check_args": "check missing-clean"}))


@pytest.fixture(scope="session")
def run(prepared):
    return explored_run.ExploredRun(prepared, source_root=SOURCE.parent)


class Served:
    """A server in another thread, and requests to it."""

    def __init__(self, run, folder):
        self.opened = handlers.listen(0)
        self.port = self.opened.getsockname()[1]
        self.access = access.Access(self.port)
        self._run, self._folder = run, folder
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def _serve(self):
        asyncio.set_event_loop(self._loop)

        async def start():
            with ThreadPoolExecutor(1) as simulations:
                application = server.application(self._run, self.access, simulations, self._folder)
                answering = tornado.httpserver.HTTPServer(application)
                answering.add_socket(self.opened)
                self._ready.set()
                await self._ended.wait()
                answering.stop()
                await answering.close_all_connections()

        self._ended = asyncio.Event()
        self._loop.run_until_complete(start())
        self._loop.close()

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def ask(self, path, method="GET", body=None, **headers):
        """Gives the status, the headers and the bytes of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Host": f"127.0.0.1:{self.port}", **headers}
        connection.request(method, path, body, {name: value for name, value in sent.items() if value is not None})
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return found

    def cookie(self):
        _, headers, _ = self.ask("/session", "POST", json.dumps({"token": self.access.token}))
        return headers["Set-Cookie"].partition(";")[0]

    def data(self, path):
        status, _, body = self.ask(path, Cookie=self.cookie())
        assert status == 200, body
        return body

    def refused(self, path, status, *words, **request):
        request = {"Cookie": self.cookie(), **request}
        found, _, body = self.ask(path, **request)
        sentence = json.loads(body)["problem"]
        assert found == status, sentence
        for word in words:
            assert word in sentence


@pytest.fixture(scope="session")
def served(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    for name in ("index.html", "page.js", "page.css", "icon.svg"):
        (folder / name).write_text(f"the file {name}")
    with Served(run, folder) as found:
        yield found


def line_of(mark):
    lines = SOURCE.read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if f"/* {mark} */" in text)


def test_the_documents_have_their_schemas(served, conforms):
    overview = json.loads(served.data("/run"))
    conforms("explored-run", overview)
    record = overview["record"]
    assert record["events"] == sum("event" in step for step in record["steps"])
    assert [step["event"] for step in record["steps"] if "event" in step] == list(range(1, record["events"] + 1))
    moment = json.loads(served.data("/moment?id=e1"))
    conforms("moment", moment)
    phases = moment["timeline"]["phases"]
    assert [len(of) for of in moment["reasons"]] == [len(phase.get("copies", ())) for phase in phases]


def test_equal_requests_have_equal_bytes(served, prepared):
    again = explored_run.ExploredRun(prepared, source_root=SOURCE.parent)
    assert again.overview() == json.loads(served.data("/run"))
    for path, lines in (("/moment?id=e3", []), ("/moment?id=e3&lines=0x10000000000", [1 << 40])):
        first = served.data(path)
        assert served.data(path) == first
        assert again.moment("e3", lines) == json.loads(first)


def test_steps_name_their_lines(run):
    record = run.record
    places = {
        (step["what"], frame["function"], SOURCE.read_text().splitlines()[frame["line"] - 1].strip())
        for step in record["steps"]
        if "place" in step
        for frame in record["places"][step["place"]]["frames"]
        if frame["file"] is not None and frame["file"].endswith("causes.c")
    }
    assert any(what == "store" and "missing-clean" in text for what, _, text in places)
    assert ("store", "publish", "pool->count = count; /* published */") in places
    assert any(what == "clean" and "durasim_clean(&pool->count)" in text for what, _, text in places)
    assert {"store", "clean", "fence", "queue_accept", "media_write"} <= {step["what"] for step in record["steps"]}


def test_a_replay_and_the_record_agree(run):
    """The steps of a line in the record are those that the timeline of a replay has."""
    last = run.record["events"]
    line = next(step["address"] for step in run.record["steps"] if step["what"] == "clean")
    (phase,) = (phase for phase in run.moment(f"e{last}", [line])["timeline"]["phases"] if phase["kind"] == "run")
    assert not phase["events_left_out"]
    shown = [(event["what"], event["cycle"], event["event"]) for event in phase["events"] if event["what"] != "fence"]
    recorded = [
        (step["what"], step["cycle"], step.get("event"))
        for step in run.record["steps"]
        if step.get("address", 0) // LINE * LINE == line and step["what"] != "evict"
    ]
    assert shown == recorded


def test_followed_lines_are_those_of_the_request(run):
    line = next(step["address"] for step in run.record["steps"] if step["what"] == "clean")
    timeline = run.moment("e2", [line + 8, line, line + LINE])["timeline"]
    assert [one["line"] for one in timeline["lines"]] == [line, line + LINE]
    assert timeline["lines_chosen_because"] == "the request names them"
    chosen = run.moment("e2", [])
    assert chosen["lines_chosen_because"] == "the causes name them"
    assert 1 <= len(chosen["timeline"]["lines"]) <= 4


def test_evictions_are_steps():
    scenario = Scenario(design="opt", machine="tiny", workload="array-swap", ops=8, settings=("l1d.size_bytes=256",))
    record = explored_run.ExploredRun(prepare_crash(scenario, options_of({}))).record
    evictions = [step for step in record["steps"] if step["what"] == "evict"]
    assert {step["level"] for step in evictions} >= {"l1d"}
    assert all(step["address"] % LINE == 0 and "place" not in step for step in evictions)


def test_a_violation_has_its_cause_and_its_reason(run):
    moment = run.moment("e1", [])
    assert [objection["oracle"] for objection in moment["timeline"]["objections"]] == ["guest"]
    causes = "\n".join(moment["causes"])
    assert f"causes.c:{line_of('missing-clean')} in missing_clean: the store of 8 bytes is lost" in causes
    assert "its line is not cleaned after it" in causes
    assert len(moment["timeline"]["lines"]) == 1
    assert moment["lines_chosen_because"] == "the causes name them"
    copies = moment["timeline"]["phases"][0]["copies"]
    found = {copy["place"]: why for copy, why in zip(copies, moment["reasons"][0], strict=True)}
    assert re.fullmatch(
        r"the caches of the cores are lost in adr, and it was not cleaned after its last store \(cycle [\d,]+\)",
        found["l1d of core 0"],
    )
    assert found["media"] == "the medium survives"


@pytest.mark.parametrize(
    ("place", "survived", "domain", "survivor", "reason"),
    [
        ("l2 of core 1", False, "adr", None, "the caches of the cores are lost in adr"),
        ("l1d of core 0", True, "eadr", "private_caches", "the caches of the cores survive in eadr"),
        ("llc", True, "nv-llc", "last_level", "the last level survives in nv-llc"),
        ("llc", True, "adr", None, "the last level is lost in adr; the image has the same bytes"),
        ("write queue 0, to media", True, "adr", "write_queues", "the write queues survive in adr"),
        ("write queue 0", False, "media", None, "the write queues are lost in media"),
        ("write queue 0", False, "adr", "write_queues", "another version replaced it"),
        ("persist buffer of core 0", True, "bbb", "persist_buffers", "the persist buffers survive in bbb"),
        ("in flight to controller 0", False, "adr", None, "no write queue has accepted it: it is lost"),
        ("possible, unfenced", False, "adr", None, "no fence has waited for this version: it may be durable or not"),
        ("media", False, "adr", None, "another version replaced it when power failed"),
    ],
)
def test_reasons_follow_from_place_and_domain(place, survived, domain, survivor, reason):
    parts = ("private_caches", "last_level", "persist_buffers", "write_queues")
    record = {"domain": domain, "survives": {part: part == survivor for part in parts}, "steps": []}
    copy = {"line": 0, "place": place, "survived": survived, "dirty": True}
    failure = {"event": 1, "how": "a clean power failure"}
    phase = {"kind": "run", "copies": [copy], "failure": failure, "dirty_shutdown": False}
    assert reasons.reasons(record, {"phases": [phase, {"kind": "program_recovery"}]}) == [[reason], []]


def test_reasons_name_what_has_not_happened():
    parts = dict.fromkeys(("private_caches", "last_level", "persist_buffers", "write_queues"), False)
    steps = [
        {"what": "store", "cycle": 1000, "address": 72},
        {"what": "clean", "cycle": 1100, "address": 64},
        {"what": "queue_accept", "cycle": 1200, "address": 64, "event": 1},
        {"what": "store", "cycle": 1300, "address": 80},
        {"what": "queue_accept", "cycle": 1400, "address": 128, "event": 2},
        {"what": "clean", "cycle": 1500, "address": 64},
        {"what": "queue_accept", "cycle": 1600, "address": 64, "event": 3},
    ]
    copy = {"line": 64, "place": "l1d of core 0", "survived": False, "dirty": True}

    def detail(event):
        failure = {"event": event, "how": "a clean power failure"}
        phase = {"kind": "run", "copies": [copy], "failure": failure, "dirty_shutdown": False}
        record = {"domain": "adr", "survives": parts, "steps": steps}
        return reasons.reasons(record, {"phases": [phase]})[0][0].partition(", and ")[2]

    assert detail(1) == "it was not cleaned after its last store (cycle 1,300)"
    assert detail(2) == "its clean (cycle 1,500) has not reached a write queue"
    assert detail(3) == ""


@pytest.mark.parametrize(
    ("how", "place", "survived", "reason"),
    [
        ("lines in flight to the media are torn (choice 1)", "media", False, "the fault tore a write of this line"),
        (
            "another subset of the unfenced cleans was accepted (choice 1)",
            "write queue 0",
            False,
            "no fence has waited",
        ),
        ("dirty lines have left the caches early (choice 2)", "llc", True, "the fault evicted this version before"),
    ],
)
def test_reasons_name_the_fault(how, place, survived, reason):
    parts = {"private_caches": False, "last_level": False, "persist_buffers": False, "write_queues": True}
    copy = {"line": 0, "place": place, "survived": survived, "dirty": True}
    phase = {"kind": "run", "copies": [copy], "failure": {"event": 1, "how": how}, "dirty_shutdown": False}
    record = {"domain": "adr", "survives": parts, "steps": []}
    assert reason in reasons.reasons(record, {"phases": [phase]})[0][0]


def test_the_core_describes_faults_in_the_words_that_reasons_look_for(run):
    described = (run.moment(each, [])["timeline"]["phases"][0]["failure"]["how"] for each in ("e1", "e1:evict.1"))
    assert [reasons._faults(how) for how in described] == [set(), {"evict"}]
    text = (Path(__file__).resolve().parents[2] / "crates/crash/src/timeline_document.rs").read_text()
    assert all(words in text for words, _ in reasons._FAULTS)


def test_the_token_is_exchanged_for_a_cookie_of_this_site(served):
    status, headers, _ = served.ask("/session", "POST", json.dumps({"token": served.access.token}))
    assert status == 200
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(headers["Set-Cookie"].split("; "))
    assert len(served.access.token) >= 22, "128 bits"
    assert access.Access(1).token != access.Access(1).token
    for body in ('{"token": "wrong"}', "{}", "[]", "no JSON", '{"token": 1}', '{"token": "é"}'):
        served.refused("/session", 401, "the token is not", method="POST", body=body.encode())


@pytest.mark.parametrize("path", ["/run", "/moment?id=e1", "/source?file=0", "/nothing"])
def test_data_needs_the_cookie(served, path):
    served.refused(path, 401, "open the address", Cookie=None)
    served.refused(path, 401, "open the address", Cookie=f"{served.access.cookie}=wrong")


@pytest.mark.parametrize("path", ["/", "/page.js", "/run", "/nothing"])
def test_other_hosts_and_origins_are_refused(served, path):
    for host in ("evil.example", f"evil.example:{served.port}", "127.0.0.1", f"127.0.0.1:{served.port + 1}", ""):
        served.refused(path, 403, "Host", Host=host)
    for origin in (
        "http://evil.example",
        "null",
        f"https://127.0.0.1:{served.port}",
        f"http://localhost:{served.port}",
    ):
        served.refused(path, 403, "Origin", Origin=origin)
    assert served.ask("/", Origin=f"http://127.0.0.1:{served.port}")[0] == 200
    assert served.ask("/", Host=f"localhost:{served.port}")[0] == 200


def test_every_answer_has_the_headers(served):
    for path in ("/", "/page.js", "/page.css", "/icon.svg", "/run", "/nothing", "/moment?id=wrong"):
        _, headers, _ = served.ask(path, Cookie=served.cookie())
        assert headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Server"] is None


def test_wrong_requests_are_answered_with_a_sentence(served):
    served.refused("/moment?id=e99999", 400, "replay")
    served.refused("/moment?id=nonsense", 400, "nonsense")
    served.refused("/moment", 400, "give the id")
    served.refused(f"/moment?id={'e' * 300}", 400, "give the id")
    served.refused("/moment?id=e1&lines=7", 400, "give up to 16 addresses")
    served.refused("/moment?id=e1&lines=0x10", 400, "no address of persistent memory")
    served.refused("/moment?id=e1&lines=" + ",".join(["0x10000000000"] * 17), 400, "give up to 16 addresses")
    served.refused("/source?file=99", 404, "no source file")
    served.refused("/source?file=-1", 404, "no source file")
    served.refused("/nothing", 404, "nothing at this address")
    served.refused("/../page.js", 404, "nothing at this address")
    served.refused("/run", 405, "cannot answer", method="DELETE")


def test_it_listens_on_this_computer_alone(served):
    assert served.opened.getsockname()[0] == "127.0.0.1"


def test_a_closed_browser_is_one_sentence(served, capsys):
    cookie = served.cookie()
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        request = f"GET /moment?id=e5 HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nCookie: {cookie}\r\n\r\n"
        connection.sendall(request.encode())
    json.loads(served.data("/moment?id=e6"))
    assert capsys.readouterr().err in ("", "durasim: the browser closed its request for e5\n")


def test_the_page_shows_sources_below_the_folder_alone(served, run):
    names = {Path(name).name: number for number, name in enumerate(run.files)}
    found = json.loads(served.data(f"/source?file={names['causes.c']}"))
    assert found["lines"] == SOURCE.read_text().splitlines()
    outside = next(number for name, number in names.items() if name != "causes.c")
    found = json.loads(served.data(f"/source?file={outside}"))
    assert (found["lines"], found["problem"]) == (None, "it is outside of --source-root")


def test_links_and_names_cannot_leave_the_folder(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside.c"
    root.mkdir()
    outside.write_text("secret")
    (root / "inside.c").write_text("one\ntwo")
    (root / "link.c").symlink_to(outside)
    (root / "inner.c").symlink_to("inside.c")
    (root / "loop.c").symlink_to("loop.c")
    (root / "folder").symlink_to(tmp_path)
    os.mkfifo(root / "pipe.c")
    (root / "large.c").write_bytes(b"x" * (sources.SIZE_MAX_BYTES + 1))
    (root / "bytes.c").write_bytes(b"\xff\n<b>")
    assert sources.read_source("inside.c", root).lines == ["one", "two"]
    assert sources.read_source(str(root / "inside.c"), root).lines == ["one", "two"]
    assert sources.read_source("inner.c", root).lines == ["one", "two"]
    assert sources.read_source("bytes.c", root).lines == ["\ufffd", "<b>"]
    for name in ("../outside.c", "link.c", "folder/outside.c", str(outside), "/etc/passwd", "x/../../outside.c"):
        assert sources.read_source(name, root).problem == "it is outside of --source-root", name
    assert sources.read_source("missing.c", root).problem == "it cannot be read: No such file or directory"
    assert sources.read_source("loop.c", root).lines is None
    assert sources.read_source("pipe.c", root).problem == "it is not a file"
    assert sources.read_source(".", root).problem == "it cannot be read: Is a directory"
    assert "larger than" in sources.read_source("large.c", root).problem
    assert sources.read_source("a\0b", root).problem == "its name is no name of a file"
    assert "--source-root" in sources.read_source("inside.c", None).problem
    (tmp_path / "other").symlink_to(root)
    assert sources.read_source("inside.c", tmp_path / "other").lines == ["one", "two"], "the folder may be a link"


def test_findings_of_a_campaign_are_listed(program, elf, prepared, tmp_path):
    file = tmp_path / "campaign.json"
    command = ("crash", *WORDS, "--points", "6", "--fault", "clean", "--elf", elf, "--json", file, "--", "run")
    assert program(*command, "missing-clean").returncode == 1
    found = explored_run.read_findings(str(file), prepared)
    failures = json.loads(file.read_text())["failures"]
    assert [one["id"] for one in found] == [one["id"] for one in failures]
    run = explored_run.ExploredRun(prepared, findings=found)
    assert run.start == failures[0]["id"]
    other = prepare_crash(
        Scenario(design="opt", machine="tiny", elf=str(elf), args=("run", "missing-fence")),
        options_of({"check_args": "check missing-fence"}),
    )
    with pytest.raises(ConfigError, match="no failure of this run; its first one opens with `durasim explore "):
        explored_run.read_findings(str(file), other)


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"failures": 1}', '{"failures": [{"id": "e1"}]}', '{"failures": []}', "x"]
)
def test_other_documents_have_no_findings(text, prepared, tmp_path):
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"^findings: "):
        explored_run.read_findings(str(file), prepared)


def test_a_run_without_a_persist_event_is_refused(elf):
    scenario = Scenario(design="opt", machine="tiny", elf=str(elf), args=("check", "missing-clean"))
    prepared = prepare_crash(scenario, options_of({"check_args": "check missing-clean"}))
    with pytest.raises(ConfigError, match=r"^explore: the run has no persist event"):
        explored_run.ExploredRun(prepared)


def test_the_command_refuses_with_a_sentence(refused, elf, monkeypatch, tmp_path):
    words = ("explore", *WORDS, "--elf", elf)
    run = ("--", "run", "missing-clean")
    with pytest.raises(ConfigError, match="the page is not built: run `make page`"):
        server.check_page(tmp_path)
    monkeypatch.setattr(server, "check_page", lambda: None)
    refused([*words[:1], "--elf", elf], 2, "design: is required")
    refused([*words, "--source-root", tmp_path / "none", *run], 4, "--source-root", "is no folder")
    refused([*words, "--replay", "nonsense", *run], 2, "replay", "nonsense")
    refused([*words, "--replay", "e99999", *run], 2, "replay")
    refused([*words, "--findings", tmp_path / "none", *run], 4, "No such file")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused([*words, "--port", str(taken.getsockname()[1]), *run], 4, "port", "Address already in use")


def test_the_command_prints_an_address_and_ends_with_ctrl_c(elf, tmp_path):
    """Starts the server of the command, with a page of this test."""
    for name in ("index.html", "page.js"):
        (tmp_path / name).write_text("a page")
    start = (
        "import pathlib, sys; from durasim.explore import server; from durasim.cli import app;"
        f"serve = server.serve; page = pathlib.Path({str(tmp_path)!r});"
        "server.check_page = lambda: None; server.serve = lambda *given: serve(*given, page);"
        "app(sys.argv[1:])"
    )
    command = [sys.executable, "-c", start, "explore", *WORDS, "--elf", str(elf), "--", "run", "missing-clean"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#[\w-]{22}\n", process.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"a page"
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
