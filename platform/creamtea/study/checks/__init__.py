"""What must hold between the parts of a study, beyond the shape of each part.

Methods check themselves (`creamtea.methods.family.Method.check`); the checks here are of what is not one.
"""

from __future__ import annotations

from creamtea.document.mistakes import Mistake
from creamtea.document.raw import RawStudy
from creamtea.methods.analysis import ANALYSES
from creamtea.methods.corpora import CORPORA
from creamtea.methods.test_sets import TEST_SETS
from creamtea.study.checks.measuring import check_latency, check_metrics
from creamtea.study.checks.outputs import check_trained
from creamtea.study.checks.resources import check_resources
from creamtea.study.checks.systems import check_systems
from creamtea.study.checks.texts import check_alignment, check_subwords
from creamtea.study.checks.variants import check_variants

__all__ = ["check"]

SECTIONS = {"corpora": CORPORA, "test_sets": TEST_SETS, "analyses": ANALYSES}


def check(study: RawStudy) -> list[Mistake]:
    """All the mistakes between parts."""
    of_methods = [
        mistake
        for section, family in SECTIONS.items()
        for name, block in study.blocks(section)
        for mistake in family.check((section, name), block, study)
    ]
    return [
        *of_methods,
        *check_trained(study),
        *check_subwords(study),
        *check_variants(study),
        *check_systems(study),
        *check_alignment(study),
        *study.unknown_key((), study.data, "baseline", "systems"),
        *check_metrics(study),
        *check_latency(study),
        *check_resources(study),
    ]
