"""The pages of reports in headless Chromium: no error, every mark drawn, narrow and wide, on paper, dark.

The numbers are made up, the figures are those of all papers. Debian's chromium is started by its path: nothing is
downloaded.
"""

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from durasim.papers import charts
from durasim.papers.paper_files import paper_names
from durasim.papers.report import write_report
from papers.made_up import reproduction

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install --no-deps -r requirements-browser.lock"
)
CHECKS = Path(__file__).with_name("report_pages.js")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.long,
    pytest.mark.minutes(2),
    pytest.mark.xdist_group("pages of reports"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium"),
]
SCREENSHOTS = os.environ.get("DURASIM_SCREENSHOTS")
"""Folder for a picture of each view; the temporary folder of the test if not set."""
NARROW, WIDE, PAPER = 375, 1280, 794
"""Widths in CSS pixels: a telephone, a screen, and a sheet of A4."""
TIMEOUT_MS = 600_000
"""Of a step of the browser, in milliseconds: other tests run at the same time."""
CONTRAST_MIN = 4.5
"""Of text to its background: WCAG 2.1, level AA."""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A folder with the pages of all papers, and the document."""
    folder = tmp_path_factory.mktemp("report")
    chosen, document = reproduction(paper_names())
    write_report(folder, chosen, document)
    return folder, chosen, document


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, timeout=TIMEOUT_MS)
        yield started
        started.close()


def opened(browser, file, width, **context):
    """Opens a page; returns it with the list of errors and of requests beyond its file."""
    views = browser.new_context(viewport={"width": width, "height": 900}, **context)
    views.set_default_timeout(TIMEOUT_MS)
    page = views.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: None if request.url == file.as_uri() else wrong.append(request.url))
    page.add_init_script(path=CHECKS)
    page.goto(file.as_uri())
    return page, wrong


def picture(page, tmp_path, name):
    page.screenshot(path=f"{SCREENSHOTS or tmp_path}/{name}.png", full_page=True)


def expected_marks(chosen, document):
    """Bars and points of each chart in the order of the index page."""
    found, start = [], 0
    for of in chosen:
        for figure in of.figures:
            rows = document.rows[start : start + len(figure.claims)]
            start += len(figure.claims)
            if figure.plot and (data := charts.drawn_rows(figure.plot, rows)):
                found.append(Counter(bar=len(data), point=len(data)))
            for each in document.series:
                if (each.paper, f"{each.figure}.toml") == (of.paper.name, figure.file) and each.points:
                    kind = "bar" if each.form == "bars" else "point"
                    found.append(Counter({kind: len(each.points)}) + Counter(point=len(each.marks)))
    return found


def test_every_mark_is_drawn(browser, report):
    folder, chosen, document = report
    page, wrong = opened(browser, folder / "index.html", WIDE)
    counts = [Counter(of) for of in page.evaluate("markCounts()")]
    assert counts == expected_marks(chosen, document)
    assert sum(map(Counter.total, counts)) > 400
    assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_pages_fit_and_can_be_read(browser, report, tmp_path, width, scheme):
    folder, _, _ = report
    for file in sorted(folder.glob("*.html")):
        page, wrong = opened(browser, file, width, color_scheme=scheme)
        picture(page, tmp_path, f"{file.stem}-{width}-{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, file.name
        assert page.evaluate("drawingFaults()") == [], file.name
        assert page.evaluate(f"faintTexts({CONTRAST_MIN})") == [], file.name
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")
        assert wrong == [], file.name
        page.context.close()


def test_pages_can_be_printed(browser, report, tmp_path):
    folder, _, _ = report
    for file in sorted(folder.glob("*.html")):
        page, wrong = opened(browser, file, PAPER)
        page.emulate_media(media="print")
        picture(page, tmp_path, f"{file.stem}-print")
        wide = "[...document.querySelectorAll('figure, figure svg, table')].map(of => of.getBoundingClientRect().right)"
        assert max(page.evaluate(wide)) <= PAPER, file.name
        assert page.evaluate("[...document.querySelectorAll('details')].every(of => !of.offsetHeight)")
        printed = page.pdf(format="A4")
        assert printed.startswith(b"%PDF")
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 1
        assert wrong == [], file.name
        page.context.close()
