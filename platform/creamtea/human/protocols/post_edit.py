"""Post-editing: the rater corrects the output, and the score says how much of it could stay.

The score is 100 less the edit rate in percent: word edits (insertions, deletions, replacements) per word of
the corrected text, at most 100. That is the human-targeted edit rate (HTER, Snover et al. 2006) without its
shifts of whole phrases: a moved word costs two edits. In Chinese and Japanese characters count as words.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from rapidfuzz.distance import Levenshtein

from creamtea.human.protocols.base import Protocol, ScoredAnswer
from creamtea.human.protocols.scale import Scale
from creamtea.human.words import words

MAX_TEXT = 10_000  # characters


class PostEdit(Protocol):
    name = "post-edit"
    title = "post-editing"
    summary = "post-edit: one output, which the rater corrects"
    welcome = "You will see one sentence and one translation of it at a time, and correct the translation."
    task = "Change as little as needed for the translation to say, in good style, what the source says."
    scale = Scale(1001, Fraction(0), Fraction(1, 10), decimals=1)  # 100 − edit rate, %
    usual_delta = 2.0  # by convention
    ratio_note = "A ratio of the shares of words kept: read the points too."
    mean_title = "kept, %"
    usual_selection = "all"
    edits_text = True
    widget = "edit"
    page_steps = 100

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        """`{"text": the corrected output}`."""
        text = _text_of(answer, output)
        if not text.strip() and output.strip():
            raise ValueError("the corrected translation is empty: write it as it should be")
        return ScoredAnswer(self._step(output, text), {"text": text})

    def in_words(self, answers: Sequence[ScoredAnswer]) -> str:
        return " · ".join(
            "unchanged" if answer.step == self.scale.steps - 1 else "corrected" for answer in answers
        )

    def check_draft(self, answer: Any, output: str) -> None:
        _text_of(answer, output)

    def _step(self, output: str, text: str) -> int:
        corrected = words(text)
        changes = Levenshtein.distance(words(output), corrected)
        last = self.scale.steps - 1
        return last - min(last, round(last * changes / max(len(corrected), 1)))


def _text_of(answer: Any, output: str) -> str:
    """No longer than a text may be, or than the output, which may be right as it is."""
    text = answer.get("text") if isinstance(answer, dict) and set(answer) == {"text"} else None
    if not isinstance(text, str):
        raise ValueError(f"a post-edit is an object with a text, not {str(answer)[:80]!r}")
    most = max(MAX_TEXT, len(output))
    if len(text) > most:
        raise ValueError(f"the corrected translation has {len(text):,} characters; allowed: {most:,}")
    return text
