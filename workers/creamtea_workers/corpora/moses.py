"""Moses' tokens and escapes, undone.

Corpora of the WMT tradition come tokenised by Moses: punctuation and contractions stand apart
(`don &apos;t`), and the characters that Moses' formats use are escaped: `&apos; &quot; &#91; &#93; &#124;
&lt; &gt; &amp;`.
Metrics want the text itself, and so do subwords. sacremoses holds the rules, which differ between languages.
They are Moses' own, and so is what they miss: guillemets stay apart, and a currency sign is taken to stand
before its number (`5 € oder` becomes `5 €oder`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacremoses import MosesDetokenizer


def detokenise(line: str, language: str) -> str:
    """The text of a line of Moses' tokens. `language` is a code such as `de` or `pt-BR`; rules exist for some
    (English contractions, French and Italian elisions, Czech, Finnish), the others share the general ones."""
    text: str = _detokeniser(primary(language)).detokenize(line.split())
    return text


def primary(language: str) -> str:
    """`pt` of `pt-BR` or `pt_BR`."""
    return language.lower().replace("_", "-").split("-")[0]


@cache
def _detokeniser(language: str) -> MosesDetokenizer:
    from sacremoses import MosesDetokenizer  # slow to import, and most text has no such tokens

    return MosesDetokenizer(lang=language)
