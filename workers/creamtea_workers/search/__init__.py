"""Search: from the encoder's output to hypotheses. One file per method, named by the classes of
`creamtea.methods.searches`."""

from __future__ import annotations

from creamtea.methods.family import implementation
from creamtea.methods.searches import Search
from creamtea_workers.search.base import Detokenize, SearchMethod

__all__ = ["Detokenize", "SearchMethod", "build_search"]


def build_search(spec: Search, detokenize: Detokenize | None = None) -> SearchMethod:
    """Build the search method of a spec.

    `detokenize` turns subwords into text, which MBR compares; no other search needs it.
    """
    return implementation(spec).build(spec, detokenize)
