"""`creamtea cancel`: stop a study."""

from __future__ import annotations

import json

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.errors import InputError

EXAMPLES = "Example: `creamtea cancel demo`"


def cancel(name: workplace.StudyName, as_json: workplace.AsJson = False) -> None:
    """Cancel a study: running steps stop within seconds, finished ones are kept.

    Steps that another unfinished study needs continue. `creamtea retry NAME` continues a cancelled study.

    Exit code 0: cancelled; 2: no such study, or it has already ended.
    """
    from creamtea.orders.submission import cancel
    from creamtea.store.queries import find_study

    with workplace.existing_database() as database:
        with database.session() as session:
            study = find_study(session, name)
        if not cancel(database, study.id):
            raise InputError(f"study {name} has already ended ({study.state}): there is nothing to cancel")
    if as_json:
        say(json.dumps({"study": name, "study_id": study.id, "state": "cancelled"}))
    else:
        say(f"cancelled {name}; `creamtea retry {name}` continues it")
