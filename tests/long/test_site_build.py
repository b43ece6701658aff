"""`make docs` builds the site; its pages load nothing from elsewhere and have what repository browsers show."""

import subprocess

import pytest

from document_blocks import ROOT, pages
from site_pages import SITE, Page, built, expected, is_remote, of_css

pytestmark = [pytest.mark.long, pytest.mark.minutes(2), pytest.mark.xdist_group("site")]


@pytest.fixture(scope="module")
def site():
    subprocess.run(["make", "--no-print-directory", "docs"], cwd=ROOT, check=True, timeout=900)
    return SITE


def test_nothing_is_loaded_from_elsewhere(site):
    found = sorted(site.rglob("*.html"))
    assert len(found) > 50
    for path in found:
        assert [load for load in Page(path.read_text(encoding="utf-8")).loads if is_remote(load)] == [], path
    for path in site.rglob("*.css"):
        assert [load for load in of_css(path.read_text(encoding="utf-8")) if is_remote(load)] == [], path


def test_what_a_page_loads_is_there(site):
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":
            continue
        for load in Page(path.read_text(encoding="utf-8")).loads:
            if not load.startswith("data:"):
                assert (path.parent / load.partition("?")[0]).is_file(), f"{path}: {load}"


def test_pages_have_the_parts_that_repository_browsers_show(site):
    assert site.is_dir()
    for page in pages():
        there = Page(built(page).read_text(encoding="utf-8")).elements
        wanted = expected(page)
        assert {kind: there[kind] for kind in wanted} == dict(wanted), page


def test_the_python_api_is_documented(site):
    text = (site / "reference/python.html").read_text(encoding="utf-8")
    for name in ("run", "compare", "crash", "RunResult"):
        assert f'id="durasim.{name}"' in text


def test_pages_with_a_diagram_have_its_script_and_others_do_not(site):
    assert (site / "assets/mermaid.min.js").is_file()
    for page in pages():
        text = built(page).read_text(encoding="utf-8")
        assert ("assets/mermaid.min.js" in text) == ("```mermaid\n" in page.read_text(encoding="utf-8")), page
