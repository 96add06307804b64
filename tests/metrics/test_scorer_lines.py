"""Lines that a scorer may print, and what is said of others."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea_workers.metrics.scorer import Failure, Program, Scores, take_line

PROGRAM = Program("tea", ["tea"], 60.0)
WRONG_LINES = {
    '{"done": 1}': "without `total`",
    '{"score": 1}': "without `index`",
    '{"index": 1}': "without `score`",
    "{}": "without a key that lines of scorers have",
    '{"scores": 1}': "without a key that lines of scorers have",
    '{"index": 1, "score": 1, "span": []}': "with `span`, where only index, score, spans may be",
    '{"done": 1, "total": 2, "left": 1}': "with `left`, where only done, total, message may be",
    '{"corpus": 1, "message": "end"}': "with `message`, where only corpus, signature, facts may be",
    '{"message": "", "level": 1}': "with `level`, where only message, error may be",
    '{"index": 1, "score": "0.5"}': "with text as `score`, where a number belongs",
    '{"index": 1, "score": null}': "with null as `score`, where a number belongs",
    '{"index": 1, "score": true}': "with true as `score`, where a number belongs",
    '{"index": 1, "score": [0.5]}': "with a list as `score`, where a number belongs",
    f'{{"index": 1, "score": 1{"0" * 400}}}': "with too large a number as `score`",
    '{"index": "1", "score": 1}': "with text as `index`, where a whole number belongs",
    '{"index": 1.0, "score": 1}': "with a decimal number as `index`, where a whole number belongs",
    '{"index": true, "score": 1}': "with true as `index`, where a whole number belongs",
    '{"done": 1, "total": NaN}': "with nan as `total`, where a finite number belongs",
    '{"done": 1, "total": null}': "with null as `total`, where a number belongs",
    '{"corpus": NaN}': "with nan as `corpus`, where a finite number belongs",
    '{"facts": 1}': "with a number as `facts`, where an object belongs",
}


@pytest.mark.parametrize(("line", "problem"), WRONG_LINES.items(), ids=range(len(WRONG_LINES)))
def test_what_is_wrong_with_a_line_is_said(line: str, problem: str) -> None:
    with pytest.raises(Failure) as caught:
        take_line(line.encode(), 3, {1: "tea"}, Scores(), PROGRAM.redacted)
    assert str(caught.value) == f"printed line 3 of its output {problem}: {line[:80]!r}"


def test_a_line_that_is_not_utf_8_is_said_to_be_none() -> None:
    with pytest.raises(Failure, match=r"^printed line 3 of its output in another encoding than UTF-8: '"):
        take_line('{"message": "größer"}'.encode("latin-1"), 3, {}, Scores(), PROGRAM.redacted)


def test_a_byte_order_mark_does_not_matter() -> None:
    scores = Scores()
    take_line(b'\xef\xbb\xbf{"index": 1, "score": 0.5}', 1, {1: "tea"}, scores, PROGRAM.redacted)
    assert scores.values == {1: 0.5}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KEYS = ("index", "score", "done", "total", "message", "error", "corpus", "signature", "facts")


@pytest.mark.slow
@given(st.binary() | st.dictionaries(st.sampled_from(KEYS), JSON).map(lambda said: json.dumps(said).encode()))
def test_no_line_breaks_the_reader(line: bytes) -> None:
    scores = Scores()
    with suppress(Failure):
        take_line(line, 1, {1: "tea", 2: "jam"}, scores, PROGRAM.redacted)
    assert scores.values.keys() <= {1, 2}
    assert not math.isnan(scores.done)
    json.dumps(scores.facts, allow_nan=False)
