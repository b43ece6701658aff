"""The page of `durasim explore` in headless Chromium: clicked through, by mouse and by keyboard, wide and narrow.

`make page` builds the page. Debian's chromium is started by its path: nothing is downloaded.
"""

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import compiled
from durasim.explore.server import PAGE

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install --no-deps -r requirements-browser.lock"
)
ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "crash" / "causes.c"
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.long,
    pytest.mark.minutes(2),
    pytest.mark.xdist_group("page of explore"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium"),
    pytest.mark.skipif(not (PAGE / "page.js").is_file(), reason="needs the page: make page"),
]
SCREENSHOTS = os.environ.get("DURASIM_SCREENSHOTS")
"""Folder for a picture of each view; the temporary folder of the test if not set."""
WIDE, NARROW = 1280, 800
TIMEOUT_MS = 120_000
"""Of a step of the browser, in milliseconds: other tests run at the same time."""
WORDS = ("--design", "opt", "--machine", "tiny", "--check", "check missing-clean")


@pytest.fixture(scope="module")
def elf():
    return compiled.program(SOURCE)


@pytest.fixture(scope="module")
def findings(elf, tmp_path_factory):
    """A document of a campaign with violations."""
    file = tmp_path_factory.mktemp("findings") / "campaign.json"
    command = [
        sys.executable,
        "-m",
        "durasim",
        "crash",
        *WORDS,
        "--points",
        "all",
        "--fault",
        "clean",
        "--json",
        str(file),
    ]
    done = subprocess.run(
        [*command, "--elf", str(elf), "--", "run", "missing-clean"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    return file


class Server:
    """`durasim explore` in a process of its own."""

    def __init__(self, *words):
        command = [sys.executable, "-m", "durasim", "explore", *map(str, words)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def address(elf, findings):
    words = (*WORDS, "--elf", elf, "--findings", findings, "--source-root", SOURCE.parent)
    with Server(*words, "--", "run", "missing-clean") as server:
        yield server.address


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, timeout=TIMEOUT_MS)
        yield started
        started.close()


class View:
    """A page in a context of its own, with what went wrong in it."""

    def __init__(self, browser, address, width=WIDE, **context):
        self._context = browser.new_context(viewport={"width": width, "height": 900}, **context)
        self._context.set_default_timeout(TIMEOUT_MS)
        self.page = self._context.new_page()
        self.wrong, self.requests = [], []
        self.page.on(
            "console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._context.close()

    def _console(self, said):
        if said.type in ("error", "warning"):
            self.wrong.append(said.text)

    def settled(self):
        """Waits until the chosen power failure is simulated."""
        self.page.wait_for_selector("#lanes")
        self.page.wait_for_timeout(50)
        self.page.locator("#state", has_text="ready").wait_for()
        return self

    def event(self):
        """Gives the persist event after which power fails, as assistive technology reads it."""
        return int(self.page.locator("#lanes").get_attribute("aria-valuenow"))

    def verdict(self):
        return self.page.locator("#verdict").inner_text()

    def mark(self, kind, number=0):
        return self.page.locator(f".drawing .mark.{kind}").nth(number)

    def press(self, key):
        self.page.locator("#lanes").press(key)
        return self.settled()


@pytest.fixture
def view(browser, address):
    with View(browser, address) as opened:
        yield opened.settled()
        assert opened.wrong == []


def test_it_shows_the_first_finding(view):
    assert view.event() == 1
    text = view.verdict()
    assert "Verdict of e1" in text
    assert "a record is broken" in text
    assert "in missing_clean: the store of 8 bytes is lost" in text
    assert "its line is not cleaned after it" in text
    assert "--replay e1" in text
    assert "lost in adr, and it was not cleaned after its last store" in view.page.locator("#lines").inner_text()
    lanes = view.page.locator(".drawing").text_content()
    for lane in ("thread", "write queue 0", "media 0"):
        assert lane in lanes


def test_the_address_loses_its_token_and_the_page_loads_nothing_else(view, address):
    assert view.page.url == address.partition("#")[0]
    assert all(request.startswith(address.partition("#")[0]) for request in view.requests)
    token = address.partition("#")[2]
    assert not any(token in request for request in view.requests if "#" not in request)
    view.page.reload()
    assert "Verdict of e1" in view.settled().verdict()


def test_keys_move_the_power_failure(view):
    last = int(view.page.locator("#lanes").get_attribute("aria-valuemax"))
    assert view.press("ArrowRight").event() == 2
    assert "Verdict of e2" in view.verdict()
    assert view.press("ArrowLeft").event() == 1
    assert view.press("ArrowLeft").event() == 1, "there is none before the first"
    assert view.press("PageDown").event() == 11
    assert view.press("End").event() == last
    assert f"Verdict of e{last}" in view.verdict()
    assert view.press("Home").event() == 1


def test_the_mouse_places_the_power_failure(view):
    view.mark("media_write").click()
    view.settled()
    event = view.event()
    assert f"Verdict of e{event}" in view.verdict()
    assert f"event {event}: media write" in view.page.locator("#step-text").inner_text()
    box = view.page.locator(".drawing").bounding_box()
    mouse, height = view.page.mouse, box["y"] + 16
    mouse.move(box["x"] + 200, height)
    mouse.down()
    mouse.move(box["x"] + box["width"] - 12, height, steps=8)
    mouse.up()
    view.settled()
    assert view.event() > event
    overview = view.page.locator(".overview").bounding_box()
    mouse.click(overview["x"] + 116, overview["y"] + 20)
    view.settled()
    assert view.event() == 1


def test_a_step_has_its_source_beside_it(view):
    store = view.page.locator(".drawing .mark.store").filter(has_text="store of 8 bytes").first
    store.click()
    assert "store of 8 bytes" in view.page.locator("#step-text").inner_text()
    line = view.page.locator(".code li.now")
    line.wait_for()
    lines = SOURCE.read_text().splitlines()
    shown = re.match(r"(\d+)(.*)", line.text_content(), re.DOTALL)
    assert lines[int(shown[1]) - 1] == shown[2]
    view.press("ArrowDown")
    assert view.page.locator(".drawing .mark.selected").count() == 1


def test_a_line_is_followed_and_dropped(view):
    before = {one.get_attribute("data-line") for one in view.page.locator("#lines article").all()}
    marks = view.page.locator(".drawing .mark.store.of-another-line")
    marks.first.click()
    view.page.locator("#follow").click()
    view.settled()
    after = {one.get_attribute("data-line") for one in view.page.locator("#lines article").all()}
    assert before < after and len(after) == len(before) + 1
    assert "the request names them" in view.page.locator("#lines").inner_text()
    (new,) = after - before
    view.page.locator(f"article[data-line='{new}'] button").click()
    view.settled()
    assert {one.get_attribute("data-line") for one in view.page.locator("#lines article").all()} == before
    view.page.locator("#choose").click()
    view.settled()
    assert "the request names them" not in view.page.locator("#lines").inner_text()


def test_recovery_goes_step_by_step(view):
    place = view.page.locator("#recovery-place")
    total = int(place.inner_text().rpartition(" ")[2])
    assert place.inner_text() == f"step 1 of {total}"
    for step in range(2, total + 1):
        view.page.get_by_role("button", name="next step").click()
        assert place.inner_text() == f"step {step} of {total}"
    assert "this is found" in view.page.locator("#recovery li.now").inner_text()
    assert view.page.locator("#recovery td.differs").count() > 0, "what is found is not what is expected"
    view.page.get_by_role("button", name="previous step").click()
    assert place.inner_text() == f"step {total - 1} of {total}"


def test_findings_open(view):
    findings = view.page.locator(".findings button")
    assert findings.count() > 1
    findings.nth(1).click()
    view.settled()
    wanted = findings.nth(1).locator("strong").inner_text()
    assert f"Verdict of {wanted}" in view.verdict()


def test_an_id_is_typed(view):
    field = view.page.locator("#id")
    field.fill("e3:evict.1")
    field.press("Enter")
    view.settled()
    assert "Verdict of e3:evict.1" in view.verdict()
    assert view.event() == 3


def test_a_wrong_id_is_a_sentence(browser, address):
    with View(browser, address) as view:
        view.settled().page.locator("#id").fill("nonsense")
        view.page.locator("#id").press("Enter")
        view.page.wait_for_selector("#problem")
        assert "nonsense" in view.page.locator("#problem").inner_text()
        assert "Verdict of e1" in view.verdict(), "the last one stays"


def test_zoom_and_cycles(view):
    before = view.page.locator(".drawing .mark").count()
    view.press("+")
    assert view.page.locator(".drawing .mark").count() < before
    view.press("-")
    view.page.get_by_label("space by cycles").check()
    assert view.page.locator(".drawing .mark").count() == before
    assert view.press("ArrowRight").event() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_the_page_fits(browser, address, tmp_path, width, scheme):
    with View(browser, address, width, color_scheme=scheme) as view:
        view.settled()
        view.page.locator(".drawing .mark.store").first.click()
        view.page.locator(".code li.now").wait_for()
        view.page.screenshot(path=f"{SCREENSHOTS or tmp_path}/explore-{width}-{scheme}.png", full_page=True)
        assert view.page.evaluate("document.documentElement.scrollWidth") <= width
        panels = [one.bounding_box() for one in view.page.locator("section").all()]
        for number, one in enumerate(panels):
            for other in panels[number + 1 :]:
                apart_x = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
                apart_y = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
                assert apart_x or apart_y, (one, other)
        assert view.wrong == []


def test_texts_of_the_program_are_text(browser, tmp_path):
    """A program whose check prints HTML: the page shows it, and no element or script of it exists."""
    source = tmp_path / "printed.c"
    source.write_text(
        SOURCE.read_text().replace("violation: a record is broken", "<img src=x onerror=alert(1)><script>1</script>")
    )
    program = tmp_path / "printed"
    done = subprocess.run(
        [sys.executable, "-m", "durasim", "cc", str(source), "-o", str(program)], check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    words = (*WORDS, "--elf", program, "--", "run", "missing-clean")
    with Server(*words) as server, View(browser, server.address) as view:
        assert "<img src=x onerror=alert(1)>" in view.settled().verdict()
        assert view.page.locator("#page img, #page script").count() == 0
        view.mark("store").click()
        view.page.locator("#source .problem", has_text="no source is shown without --source-root").wait_for()
        assert view.wrong == []


def test_a_program_without_debug_information_works(browser, elf, tmp_path):
    stripped = tmp_path / "stripped"
    data = elf.read_bytes()
    # The names of the sections with debug information, so that none is found.
    stripped.write_bytes(data.replace(b".debug_", b".dropd_"))
    stripped.chmod(0o755)
    words = (*WORDS, "--elf", stripped, "--", "run", "missing-clean")
    with Server(*words) as server, View(browser, server.address) as view:
        assert "no debug information" in view.settled().page.locator("header").inner_text()
        view.mark("store").click()
        view.page.locator("#source .problem", has_text="no debug information").wait_for()


def test_without_token_or_server_the_page_says_so(browser, elf):
    with Server(*WORDS, "--elf", elf, "--", "run", "missing-clean") as server:
        address = server.address
        with View(browser, address.partition("#")[0]) as view:
            view.page.wait_for_selector("#problem")
            assert "open the address" in view.page.locator("#problem").inner_text()
        view = View(browser, address).settled()
        port = int(address.partition("#")[0].rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/run", headers={"Host": f"evil.example:{port}"})
        assert connection.getresponse().status == 403
        connection.close()
    view.page.locator("#lanes").press("ArrowRight")
    view.page.wait_for_selector("#problem")
    assert "`durasim explore` has ended" in view.page.locator("#problem").inner_text()
    view.page.context.close()
