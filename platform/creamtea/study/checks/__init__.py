"""What must hold between the parts of a study, beyond the shape of each part.

The checks read the expanded raw document, so that they say their part even where another part is
malformed: what they cannot read they pass over, since the validation reports it.
"""

from __future__ import annotations

from typing import Any

from creamtea.document.mistakes import Mistake
from creamtea.study.checks.measuring import check_analyses, check_latency, check_resources
from creamtea.study.checks.metrics import check_metrics, metric_name
from creamtea.study.checks.reading import Groups
from creamtea.study.checks.systems import check_baseline, check_systems
from creamtea.study.checks.texts import check_alignment, check_corpora, check_test_sets
from creamtea.study.checks.variants import check_variants

__all__ = ["check", "metric_name"]


def check(data: dict[str, Any], groups: Groups) -> list[Mistake]:
    """All the mistakes between parts. `groups` are the grids' members (`creamtea.study.grid`)."""
    return [
        *check_corpora(data, groups),
        *check_variants(data, groups),
        *check_systems(data, groups),
        *check_test_sets(data, groups),
        *check_alignment(data),
        *check_baseline(data, groups),
        *check_metrics(data),
        *check_latency(data, groups),
        *check_analyses(data, groups),
        *check_resources(data),
    ]
