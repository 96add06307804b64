"""The studies of this database, newest first, each with a link to its report."""

from __future__ import annotations

from creamtea.human import rights
from creamtea.store.queries import StudySummary, find_study, list_studies
from creamtea_webapp import session
from creamtea_webapp.markup import show

TEMPLATE = "studies.html"


def page() -> None:
    who = session.require(rights.READ_STUDIES)
    with session.database().session() as reading:
        by_name: dict[str, list[StudySummary]] = {}
        for summary in list_studies(reading):
            by_name.setdefault(summary.name, []).append(summary)
        entries = [
            (newest, earlier, list(find_study(reading, newest.id).spec["systems"]))
            for newest, *earlier in by_name.values()
        ]
    show(TEMPLATE, "head", submits=rights.may(who, rights.SUBMIT_STUDIES))
    if entries:
        show(TEMPLATE, "studies", entries=entries)
    else:
        show(TEMPLATE, "no_studies")
