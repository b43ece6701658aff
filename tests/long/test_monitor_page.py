"""The page of `--monitor` in headless Chromium: a sweep up to its end, wide and narrow, light and dark.

Debian's chromium is started by its path: nothing is downloaded.
"""

import shutil
import subprocess
import sys

import pytest

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install --no-deps -r requirements-browser.lock"
)
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.long,
    pytest.mark.minutes(2),
    pytest.mark.xdist_group("page of a command"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium"),
]
TIMEOUT_MS = 120_000
"""Of a step of the browser, in milliseconds: other tests run at the same time."""
STUDY = """
name = "<b>study</b>"
designs = ["hercules", "tc"]
workloads = ["array-swap"]
machine = "tiny"
ops = 10000
args = { populate = 8 }
[axes]
seed = [1, 2]
"""


@pytest.fixture
def browser():
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, timeout=TIMEOUT_MS)
        yield started
        started.close()


def opened(browser, address, wrong, width, scheme):
    """Opens the page in a browser of its own; `wrong` gets what goes wrong in it."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    return page


def test_the_page_follows_a_sweep_to_its_end(browser, tmp_path):
    path, wrong = tmp_path / "study.toml", []
    path.write_text(STUDY)
    command = [sys.executable, "-m", "durasim", "sweep", str(path), "--no-store", "--jobs", "1", "--monitor", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stderr.readline().rpartition(" ")[2].strip()
        pages = [opened(browser, address, wrong, *view) for view in ((375, "dark"), (1280, "light"))]
        for page in pages:
            page.locator("#grid .point").nth(3).wait_for(state="attached")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.evaluate("location.hash") == ""
        assert process.communicate()[1] == ""
    assert process.returncode == 0
    for page in pages:
        page.get_by_text("the command has finished").wait_for()
        assert page.locator("h1").inner_text() == "durasim sweep: <b>study</b>", "a name is no markup"
        assert page.locator("#grid .point.s").count() == 4
        assert page.locator("#recent tbody tr").count() == 4
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not wrong
