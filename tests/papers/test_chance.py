"""Numbers by chance: results of designs exchanged at random."""

from durasim.papers.chance import Permutations, chance_of
from durasim.papers.evaluation import Evidence
from durasim.papers.formulas import formula_of
from durasim.papers.grids import Cell
from durasim.papers.paper_files import Claim, Measure
from durasim.papers.verdicts import Published

DESIGNS = {"opt": 100.0, "a": 80.0, "b": 50.0, "c": 20.0}


def claim(design: str, share: str, *, path: str = "throughput", kind: str = "measured") -> Claim:
    published = Published("F", "m", design, "w", "opt", share, "%", "true", "", "", kind, "share", "", "", "")
    selections = {
        "ours": {"runs": "main", "metric": path, "design": design},
        "baseline": {"runs": "main", "metric": path, "design": "opt"},
    }
    measure = Measure(formula_of("percent(mean(ours) / mean(baseline))", ["ours", "baseline"]), 1, "", {})
    return Claim(published, measure, selections, "")


def evidence(of: dict[str, float], workloads: tuple[str, ...] = ("w1", "w2")) -> Evidence:
    cells = [
        (Cell("main", {"workload": workload, "design": design}), {"throughput": number, "own": None})
        for workload in workloads
        for design, number in of.items()
    ]
    return Evidence(cells, [], lambda _: None, [])


def test_each_order_of_the_labels_is_as_frequent_as_the_others():
    claims = [claim("a", "80"), claim("b", "50"), claim("c", "20")]
    found = chance_of([Permutations(claims, evidence(DESIGNS), 2000, seed=1)])
    assert (found.permutations, found.numbers, found.ours) == (2000, 3, 3)
    # Of the 24 orders of 100, 80, 50 and 20 for opt, a, b and c, two have 80 for a beside 100: they reproduce 80 %. So
    # do two each for 50 and 20. Other quotients are outside of the bands. Only the true order reproduces all three.
    assert abs(found.mean - 3 * 2 / 24) < 0.03
    assert found.interval == (0, 3)
    assert abs(found.share_at_least_ours - 1 / 24) < 0.015


def test_equal_draws_for_equal_seeds():
    claims = [claim("a", "80"), claim("c", "20")]
    one, other, third = (Permutations(claims, evidence(DESIGNS), 200, seed=seed).counts for seed in (1, 1, 2))
    assert one == other
    assert one != third


def test_designs_without_differences_are_reproduced_by_no_number_that_scores():
    equal = dict.fromkeys(DESIGNS, 100.0)
    found = chance_of([Permutations([claim("a", "80"), claim("b", "50")], evidence(equal), 100, seed=1)])
    assert (found.ours, found.mean, found.interval) == (0, 0.0, (0, 0))


def test_numbers_that_cannot_be_exchanged_are_left_out():
    alone = Evidence([(Cell("main", {"design": "a"}), {"throughput": 1.0})], [], lambda _: None, [])
    others = [claim("a", "80", kind="arithmetic"), claim("a", "80", path="own"), claim("a", "99.9")]
    for claims, runs in ((others, evidence(DESIGNS)), ([claim("a", "80")], alone)):
        found = chance_of([Permutations(claims, runs, 10, seed=1)])
        assert (found.numbers, found.ours, found.mean) == (0, 0, 0.0)


def test_papers_are_added_draw_by_draw():
    papers = [Permutations([claim("a", "80")], evidence(DESIGNS), 50, seed=seed) for seed in (1, 2)]
    found = chance_of(papers)
    assert found.numbers == 2
    assert found.mean == sum(papers[0].counts + papers[1].counts) / 50
