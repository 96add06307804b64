"""docs/results/claims.md: its figures are those of docs/results/data, and one rule judges them."""

import re
from collections.abc import Iterator

import pytest
from generate import DOCS, ClaimTable, Comparison, PaperClaim, judged, read_claims

from creamtea.report.papers import Outcome

RESULTS = DOCS / "results"


def comparisons() -> Iterator[tuple[ClaimTable, PaperClaim, Comparison]]:
    for table in read_claims().values():
        for claim in table.claims:
            yield from ((table, claim, comparison) for comparison in claim.compared)


def test_every_figure_is_as_the_studys_report_prints_it() -> None:
    pages: dict[str, str] = {}
    for table, claim, comparison in comparisons():
        page = (claim.study or table.study).page
        if page not in pages:
            text = (RESULTS / page).read_text(encoding="utf-8").replace("<br>", " ")
            pages[page] = " ".join(re.sub(r"[\\*]", "", text).split())
        for printed in (comparison.own, comparison.other, comparison.difference):
            assert printed in pages[page], (page, printed)


def test_no_verdict_is_written_by_hand() -> None:
    """Outside of the generated tables no file of results has one in bold."""
    for path in (*RESULTS.rglob("*.md"), *RESULTS.rglob("data/*.yaml")):
        text = re.sub(r"<!-- (?!end).*?<!-- end -->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.findall(r"\*\*(?:holds?|opposite|undecided)\b", text), path.name


@pytest.mark.parametrize(
    ("own", "other", "difference", "direction", "outcome", "shown"),
    [
        # the widest that both allow, over seeds, too: 3.9 + √(1.4² + (4.303 × 0.4/√3)²) = 5.62 < 6.70
        (
            "3.9 ± 0.4 [2.9, 5.3]",
            "8.2 ± 0.0 [6.7, 10.1]",
            "",
            "lower",
            Outcome.HOLDS,
            "8.2 ± 0.0 → 3.9 ± 0.4, −4.3 [−7.6, −1.1]",
        ),
        # all three p-values, and the interval over seeds
        (
            "37.5 ± 0.1 [35.9, 39.1]",
            "36.4 ± 0.3 [34.7, 37.9]",
            "+1.1 [0.6, 1.7] p=0.009/<0.001 with seeds [0.3, 2.0] p=0.15",
            "higher",
            Outcome.UNDECIDED,
            "36.4 ± 0.3 → 37.5 ± 0.1, +1.1 [0.3, 2.0], p = 0.009, <0.001, 0.15",
        ),
        (
            "3.33 [3.10, 3.55]",
            "3.16 [2.95, 3.35]",
            "+0.16 [0.03, 0.29] p=0.012/0.012",
            "lower",
            Outcome.OPPOSITE,
            "3.16 → 3.33, +0.16 [0.03, 0.29], p = 0.012, 0.012",
        ),
        ("1.16 ± 0.00", "2.85 ± 0.06", "", "lower", Outcome.SAME, "2.85 ± 0.06 → 1.16 ± 0.00, −1.69"),
        (
            "4.2 [3.8, 4.5]",
            "4.1 [3.8, 4.5]",
            "+0.0 [−0.1, 0.1] p=1.00/1.00",
            "alike",
            Outcome.UNDECIDED,
            "4.1 → 4.2, 0.0 [−0.1, 0.1], p = 1.00, 1.00, margin 0.08",
        ),
    ],
)
def test_a_claim_is_judged_by_its_figures(
    own: str, other: str, difference: str, direction: str, outcome: Outcome, shown: str
) -> None:
    comparison = Comparison.model_validate(
        {"own": own, "other": other, "difference": difference, "direction": direction}
    )
    claim = PaperClaim(claim="c", paper="p", compared=[comparison])
    judgement, words = judged(comparison, claim, 3)
    assert (judgement.outcome, words) == (outcome, shown)


def test_what_is_not_a_figure_is_refused() -> None:
    comparison = Comparison(own="about 3", other="2", direction="higher")
    with pytest.raises(ValueError, match="'about 3' is not a figure as reports print it"):
        judged(comparison, PaperClaim(claim="c", paper="p", compared=[comparison]), 1)
