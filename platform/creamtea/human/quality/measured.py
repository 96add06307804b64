"""False alarms of the rater report, measured on people: annotators whom the organisers of three published
campaigns accepted, by `bench/rater_reports.py` (docs/results/human-evaluation.md has the intervals).

Crowd DA: WMT 2022 German-English, workers whom WMT's own control of quality had let through. ESA and MQM: the
campaigns on WMT 2023 English-German of Kocmi et al. 2024. Some of these annotators may well have scored
without reading: the rates are upper limits of false alarms.
"""

from __future__ import annotations

CAMPAIGNS = ("crowd DA", "ESA", "MQM")
ANNOTATORS = (151, 33, 12)
DESCRIBED = (7, 1, 0)  # by any of SIGNS
# by the name of a check; one that a campaign gave nothing to judge by flags nobody
FLAGGED: dict[str, tuple[int, int, int]] = {
    "reading": (18, 5, 1),
    "bad-references": (13, 0, 0),
    "repeats": (16, 0, 0),
    "speed": (0, 11, 4),  # with the texts; times that begin with the first click
    "one-answer": (0, 0, 0),
    "run": (7, 0, 0),
    "spread": (5, 0, 0),
    "agreement": (2, 0, 0),
    "severity": (5, 0, 0),
}
NOT_JUDGED: dict[str, tuple[str, ...]] = {
    "repeats": ("ESA", "MQM"),
    "speed": ("crowd DA",),
    "agreement": ("ESA", "MQM"),
    "severity": ("ESA", "MQM"),
}


def flagged_in_words(check: str) -> str:
    """How many accepted annotators a check flags, by campaign; "" for one that was judged on none."""
    counts = FLAGGED.get(check)
    if counts is None:
        return ""
    parts = [
        f"{count} of {of} ({campaign})"
        for campaign, count, of in zip(CAMPAIGNS, counts, ANNOTATORS, strict=True)
        if campaign not in NOT_JUDGED.get(check, ())
    ]
    return f"flags {', '.join(parts)} accepted annotators" if parts else ""


def described_in_words() -> str:
    """How many accepted annotators got a description, together and by campaign."""
    parts = ", ".join(
        f"{campaign} {count} of {of}"
        for campaign, count, of in zip(CAMPAIGNS, DESCRIBED, ANNOTATORS, strict=True)
    )
    share = 100 * sum(DESCRIBED) / sum(ANNOTATORS)
    together = f"{sum(DESCRIBED)} of {sum(ANNOTATORS)}"
    return f"{together} annotators whom published campaigns accepted ({share:.0f} %; {parts})"
