"""The code blocks of all pages run, with the outputs shown on the pages; `tests/long` also runs the long ones."""

import pytest

import document_blocks
from document_blocks import DocumentError, blocks_of, fits, run_page

PAGES = document_blocks.pages()
SHORT = [page for page in PAGES if any(block.is_run and not block.is_long for block in blocks_of(page))]


def _name(page):
    return page.relative_to(document_blocks.ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_block_is_run_or_says_why(page):
    for block in blocks_of(page):
        block.check()


@pytest.mark.parametrize("page", SHORT, ids=_name)
def test_short_blocks_do_what_the_page_says(page, tmp_path):
    assert run_page(page, tmp_path, with_long=False)


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```console\n$ echo one\ntwo\n```\n", "prints something else"),
        ("```console\n$ echo one\n```\n", "prints something else"),
        ("```console\n$ false\n```\n", "exit code 1 instead of 0"),
        ("```sh\ntrue   # exit code 1\n```\n", "exit code 0 instead of 1"),
        ("```sh\nexit 0\ntrue\n```\n", "the shell ended"),
        ("```python\nraise ValueError(3)\n```\n", "ValueError: 3"),
        ("```sh\necho 1\n```\n\n<!-- output -->\n```text\n2\n```\n", "prints something else"),
        ("```text\nhello\n```\n", "is not run and does not say why"),
        ("    indented\n", "is not run and does not say why"),
        ("```console\nhello\n```\n", "begins with a command"),
        ("<!-- not run -->\n```sh\nfalse\n```\n", "is incomplete"),
        ("<!-- output -->\n```text\n```\n", "no output"),
    ],
)
def test_a_block_that_breaks_the_rules_is_noticed(page, complaint, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(page)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(DocumentError, match=complaint):
        run_page(path, scratch, with_long=True)


def test_blocks_build_on_each_other(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "<!-- file made.txt -->\n```text\nmade\n```\n\n"
        "<!-- long -->\n```sh\necho more >> made.txt\n```\n\n"
        "<!-- not run: it would fail -->\n```sh\nfalse\n```\n\n"
        "- in a list\n\n  ```console\n  $ cat made.txt; \\\n  false   # exit code 1\n  made\n  ...\n  ```\n"
    )
    for with_long, ran in ((False, 1), (True, 2)):
        scratch = tmp_path / str(with_long)
        scratch.mkdir()
        assert len(run_page(path, scratch, with_long=with_long)) == ran
        assert (scratch / "made.txt").read_text() == ("made\nmore\n" if with_long else "made\n")


@pytest.mark.parametrize(
    ("expected", "found", "does_fit"),
    [
        (["a", "...", "z"], ["a", "z"], True),
        (["a", "...", "z"], ["a", "b", "z", "c", "z"], True),
        (["a", "...", "z"], ["a", "b"], False),
        (["in ... s, 3 runs"], ["in 1.25 s, 3 runs"], True),
        (["in ... s, 3 runs"], ["in 1.25 s, 4 runs"], False),
        (["a.c"], ["abc"], False),
        (["..."], [], True),
        ([], ["a"], False),
    ],
)
def test_dots_stand_for_anything(expected, found, does_fit):
    assert fits(expected, found) is does_fit
