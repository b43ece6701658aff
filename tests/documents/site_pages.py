"""Pages of the site, for the tests of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from document_blocks import ROOT, tokens_of

SITE = ROOT / "build" / "site"
# The attributes of elements that a browser loads with a page. Links that a reader follows are none of them.
LOADED = {
    "script": "src", "img": "src", "source": "src", "iframe": "src", "video": "src", "audio": "src", "embed": "src",
    "object": "data",
}  # fmt: skip
LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
OF_CSS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
ELEMENT_OF_TOKEN = {
    "list_item_open": "li", "bullet_list_open": "ul", "ordered_list_open": "ol",
    "table_open": "table", "tr_open": "tr", "fence": "pre", "code_block": "pre",
    "blockquote_open": "blockquote", "image": "img", "strong_open": "strong", "em_open": "em",
}  # fmt: skip


@dataclass
class Page(HTMLParser):
    """A page: what it loads, and how many elements of each kind its text has."""

    text: str
    loads: list[str] = field(default_factory=list)
    elements: Counter[str] = field(default_factory=Counter)
    is_inside: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "link" and set((values.get("rel") or "").split()) & LOADING_LINKS:
            self.loads.append(values.get("href") or "")
        if values.get(LOADED.get(tag, "")):
            self.loads.append(values[LOADED[tag]] or "")
        self.loads += of_css(values.get("style") or "")
        self.is_inside |= tag == "article"
        if self.is_inside:
            self.elements[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self.is_inside = False


def of_css(text: str) -> list[str]:
    """Gives what a style sheet loads."""
    return [first or second for first, second in OF_CSS.findall(text)]


def is_remote(address: str) -> bool:
    return re.match(r"(?:[a-z]+:)?//", address) is not None


def built(page: Path) -> Path:
    """Gives the file of the site that a page of the repository has become."""
    relative = page.relative_to(ROOT)
    return SITE / (relative.with_name("index.html") if page.name == "README.md" else relative.with_suffix(".html"))


def expected(page: Path) -> Counter[str]:
    """Gives how many elements of each kind a page has, as a repository browser reads it."""
    tokens = tokens_of(page)
    kinds = [token.type for token in tokens] + [child.type for token in tokens for child in token.children or ()]
    return Counter(ELEMENT_OF_TOKEN[kind] for kind in kinds if kind in ELEMENT_OF_TOKEN)
