"""Answers of simulated raters, honest ones and five other kinds, for one contrastive campaign.

The model: score = 4.2 + item (sd 0.6) + system + item × system (sd 0.6) + severity (sd 0.4) + noise (sd 0.8),
in points of the 1-to-6 scale; a spoilt text loses 1.5 points (sd 0.6). Two honest raters correlate at about
0.55. They need 8 s and the time to read an item at 110 words a minute (times e^±0.3); a fast one 1.5 to 6 s.
A fast reader scores as honest ones do, one who is too fast at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from creamtea.human.quality import NONE, Answers
from creamtea.store.tables import ItemKind

KINDS = ("honest", "fast reader", "too fast", "straight-lining", "scale reversed", "at random")
EFFECTS = np.array((0.3, 0.0, -0.2, -0.5))  # of the systems, points
SYSTEMS = len(EFFECTS)
GROUPS = tuple((system,) for system in range(SYSTEMS))
OWN_ITEMS, RATERS_AN_ITEM = 36, 3
BAD, REPEATS = 10, 6  # controls a rater
WORDS = 55.0


@dataclass(frozen=True)
class RaterAnswer:
    """One item as a rater answered it: `steps` has a score for each of the `groups`, as they were shown."""

    rater: int
    item: int
    segment: int
    groups: tuple[tuple[int, ...], ...]
    steps: tuple[int, ...]
    kind: ItemKind = ItemKind.RATED
    original: int | None = None
    degraded: int | None = None
    words: float = WORDS
    seconds: float | None = None


def by_columns(answers: Sequence[RaterAnswer]) -> Answers:
    """The answers as the database would give them."""
    scores = [
        (at, place, system, step)
        for at, answer in enumerate(answers)
        for place, (group, step) in enumerate(zip(answer.groups, answer.steps, strict=True))
        for system in sorted(group)
    ]
    answer, place, system, step = np.array(scores, dtype=np.int64).reshape(-1, 4).T

    def whole(name: str) -> np.ndarray:
        values = (getattr(answer, name) for answer in answers)
        return np.array([NONE if value is None else value for value in values], dtype=np.int64)

    return Answers(
        **{name: whole(name) for name in ("rater", "item", "segment", "original", "degraded")},
        kind=np.array([answer.kind for answer in answers], dtype=np.str_),
        words=np.array([answer.words for answer in answers], dtype=np.float64),
        seconds=np.array([answer.seconds for answer in answers], dtype=np.float64),
        answer=answer,
        place=place,
        system=system,
        step=step,
    )


def campaign(rng: np.random.Generator, kinds: list[str]) -> Answers:
    """The answers of one campaign in which rater i is of kind kinds[i]; three raters an item, drawn anew."""
    items = len(kinds) * OWN_ITEMS // RATERS_AN_ITEM
    quality = 4.2 + rng.normal(0, 0.6, (items, 1)) + EFFECTS + rng.normal(0, 0.6, (items, SYSTEMS))
    seats = np.concatenate([rng.permutation(items) for _ in range(RATERS_AN_ITEM)])
    answers: list[RaterAnswer] = []
    for rater, kind in enumerate(kinds):
        own = list(dict.fromkeys(seats[rater * OWN_ITEMS : (rater + 1) * OWN_ITEMS].tolist()))
        answers += _answers(rng, rater, kind, own, quality)
    return by_columns(answers)


def _answers(
    rng: np.random.Generator, rater: int, kind: str, own: list[int], quality: np.ndarray
) -> list[RaterAnswer]:
    bad, again = own[:BAD], own[BAD : BAD + REPEATS]  # the controls come after their originals
    asked = np.array(own + bad + again)
    kinds = ["rated"] * len(own) + ["bad-reference"] * len(bad) + ["repeat"] * len(again)
    n = len(asked)
    degraded = rng.integers(0, SYSTEMS, n)
    scores = quality[asked] + rng.normal(0, 0.4) + rng.normal(0, 0.8, (n, SYSTEMS))
    spoilt = np.flatnonzero(np.array(kinds) == "bad-reference")
    scores[spoilt, degraded[spoilt]] -= rng.normal(1.5, 0.6, len(spoilt))
    if kind == "scale reversed":
        scores = 7 - scores
    steps = np.clip(np.round((scores - 1) / 0.2), 0, 25).astype(int)
    seconds = 8 + 60 * WORDS / (110 * np.exp(rng.normal(0, 0.3, n)))
    if kind in ("fast reader", "too fast"):
        seconds = rng.uniform(1.5, 6, n)
    if kind in ("too fast", "at random"):
        steps = rng.integers(0, 26, (n, SYSTEMS))
    elif kind == "straight-lining":  # one value, of which one output in 20 is a step off
        steps = rng.integers(1, 25) + (rng.random((n, SYSTEMS)) < 0.05)
    items = asked + len(quality) * np.array([{"rated": 0, "bad-reference": 1, "repeat": 2}[k] for k in kinds])
    return [
        RaterAnswer(
            rater=rater,
            item=item,
            kind=ItemKind(kinds[at]),
            original=None if kinds[at] == "rated" else int(asked[at]),
            degraded=int(degraded[at]) if kinds[at] == "bad-reference" else None,
            groups=GROUPS,
            steps=tuple(step),
            seconds=int(1000 * seconds[at]) / 1000,
            segment=int(asked[at]),
        )
        for at, (item, step) in enumerate(zip(items.tolist(), steps.tolist(), strict=True))
    ]
