"""The form of a campaign: every setting, with the values that it begins with.

Each field has a key. Their values are read from the session at the click (`form_values`), not from the last
drawing: a field that is left by pressing the button changes in the same message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.making.questions import write_questions
from creamtea.human.making.settings import MAX_PER_PAGE
from creamtea.human.media.types import CAPTIONS_ENDING, ENDINGS
from creamtea.human.protocols import Protocol, usable_protocols
from creamtea.wording import counted
from creamtea_webapp.pages.organise.shared import LABELS, field_error

SELECTION_NAMES = {
    "all": "all segments",
    "differing": "those on which the outputs differ",
    "stratified": "a sample in proportion to strata",
    "disagreement": "those on which metrics disagree most, and a part at random",
}
NOTHING = CampaignRequest(study="", test_set="", systems=[])  # what a new campaign's form begins with
USUAL = 4  # systems side by side
UNIT_NAMES = {"segment": "a segment", "document": "a document"}
PAIR_NAMES = {"all": "every pair of systems", "baseline": "each system with the baseline"}
MEDIA_ENDINGS = [end[1:] for ends in (*ENDINGS.values(), (CAPTIONS_ENDING,)) for end in ends]
# fields whose key is their name; of those that are drawn only with some protocols and selections too
NAMES = (
    "name",
    "protocol",
    "ratings_per_item",
    "seed",
    "instructions",
    "documents",
    "unit",
    "segments_per_page",
    "document_score",
    "show_reference",
    "aim",
    "items",
    "strata",
    "metrics",
    "random_share",
    "pairs",
    "bad_references",
    "repeats",
    "batch",
    "taxonomy",
    "proposals",
    "media",
    "media_files",
    "tutorial",
    "context",
    "delta",
    "minutes_per_item",
    "consent",
    "contact",
    "questions",
    "completion_code",
    "completion_url",
    "attention",
    "attention_every",
    "attention_share",
    "failing_code",
)


def draw(
    name: str,
    start: CampaignRequest,
    study: str,
    spec: dict[str, Any],
    metrics: Sequence[str],
    with_errors: Sequence[str],
) -> None:
    """The fields below the study's. They begin with `start`, which is the draft `name` where there is one;
    `metrics` are the names under which the study's scores are stored, `with_errors` those of metrics that
    have found errors in outputs."""
    protocol = _systems_and_protocol(name, start, study, spec)
    _items(start, protocol, metrics, study, list(spec["systems"]))
    _numbers(start)
    if protocol.marks_errors:
        _errors(start, with_errors, study)
    _texts(start)


def form_values(state: Any) -> dict[str, Any]:
    """What the fields say, by the names of `create_campaign` and of its settings. `tutorial`, `attention`,
    `taxonomy`, `proposals`, `media` and `documents` are uploaded files or None, `media_files` a list of them;
    fields that are not drawn are left out."""
    study, protocol = state[key("study")], state[key("protocol")]
    values = {name: state[key(name)] for name in NAMES if key(name) in state}
    for name in ("systems", "test_set", "baseline"):
        values[name] = state[key(name, study)]
    values["select"] = state[key("select", protocol)]
    values["differ_between"] = state.get(key("differ_between", study), [])
    values["proposals_from"] = state.get(key("proposals_from", study))
    for name in ("bad_references", "repeats"):  # below 1 a share, from 1 a whole number of items
        values[name] = int(values[name]) if values[name] >= 1 and values[name] % 1 == 0 else values[name]
    return values


def key(name: str, of: str = "") -> str:
    """The key of a field; where its choices depend on another field, that one's value is in it."""
    return f"campaign-{name}" + (f"-{of}" if of else "")


def _systems_and_protocol(name: str, start: CampaignRequest, study: str, spec: dict[str, Any]) -> Protocol:
    """Name, systems, protocol; the protocol."""
    protocols = {protocol.name: protocol for protocol in usable_protocols() if protocol.rated_here}
    mine = start if start.study == study else NOTHING
    left, right = st.columns(2)
    with left:
        st.text_input("Name", name, disabled=bool(name), key=key("name"))
        field_error("name")
    test_sets, every = list(spec["test_sets"]), list(spec["systems"])
    right.selectbox("Test set", test_sets, index_of(test_sets, mine.test_set), key=key("test_set", study))
    st.multiselect(
        LABELS["systems"],
        every,
        # a choice among many is the organiser's
        [system for system in mine.systems if system in every] or (every if len(every) <= USUAL else []),
        max_selections=max(protocol.max_systems for protocol in protocols.values()),
        placeholder=f"choose two to eight of {len(every)}",
        help="Two to eight. Raters never see their names.",
        key=key("systems", study),
    )
    field_error("systems")
    left, right = st.columns([2, 1])
    chosen = left.selectbox(
        LABELS["protocol"],
        list(protocols),
        index_of(list(protocols), start.protocol),
        format_func=lambda name: protocols[name].summary,
        key=key("protocol"),
    )
    baseline = mine.settings.baseline or spec["baseline"]
    with right:
        st.selectbox(LABELS["baseline"], every, index_of(every, baseline), key=key("baseline", study))
        field_error("baseline")
    return protocols[chosen]


def _items(
    start: CampaignRequest, protocol: Protocol, metrics: Sequence[str], study: str, systems: Sequence[str]
) -> None:
    """Which segments, and how many raters for each."""
    stored = start.settings
    kinds = list(protocol.selections)
    st.header("Items", anchor=False)
    left, middle, right = st.columns([2, 1, 1])
    units = list(UNIT_NAMES)
    unit = left.selectbox(
        LABELS["unit"],
        units,
        index_of(units, stored.unit),
        format_func=UNIT_NAMES.__getitem__,
        help="Documents are drawn whole and need the file of documents below.",
        key=key("unit"),
    )
    if unit == "document":
        per_page = stored.segments_per_page
        right.checkbox(LABELS["document-score"], stored.document_score, key=key("document_score"))
        middle.number_input("Segments per page", 1, MAX_PER_PAGE, per_page, key=key("segments_per_page"))
    left, middle, right = st.columns([2, 1, 1])
    select = left.selectbox(
        LABELS["select"],
        kinds,
        index_of(kinds, stored.select or protocol.usual_selection),
        format_func=SELECTION_NAMES.__getitem__,
        key=key("select", protocol.name),
    )
    most = "Documents at most" if unit == "document" else LABELS["items"]
    middle.number_input(most, 1, 10**6, stored.items, placeholder="no limit", key=key("items"))
    right.number_input(LABELS["ratings"], 1, 1000, start.ratings_per_item, key=key("ratings_per_item"))
    if select != "all":
        pair = stored.differ_between if set(stored.differ_between) <= set(systems) else []
        st.multiselect(
            LABELS["differ-between"],
            systems,
            pair,
            max_selections=2,
            placeholder="any two systems",
            key=key("differ_between", study),
        )
    field_error("unit", "select", "items", "ratings", "differ-between", "strata", "metrics", "pairs")
    if select == "stratified":
        strata = ["length", "document"]
        st.multiselect(LABELS["strata"], strata, stored.strata, key=key("strata"))
    if select == "disagreement":
        chosen = [metric for metric in stored.metrics if metric in metrics]
        st.multiselect(LABELS["metrics"], metrics, chosen, max_selections=2, key=key("metrics"))
        share = stored.random_share
        st.number_input("Share drawn at random", 0.01, 0.99, share, key=key("random_share"))
    st.multiselect(
        LABELS["show-reference"],
        [1, 2, 3, 4],
        stored.show_reference,
        placeholder="none",
        help="1 is the test set's target, others are systems of the study with `reference: 2` and so on.",
        key=key("show_reference"),
    )
    field_error("document-score", "show-reference")
    st.checkbox(
        LABELS["aim"],
        stored.aim,
        help="Systems whose verdict is settled, or unlikely to be decided by what is planned, are rated "
        "on one segment (or document) in twenty from then on, and the others go on without them.",
        key=key("aim"),
    )
    field_error("aim")
    if protocol.chooses_pairs:
        pairs = list(PAIR_NAMES)
        st.selectbox(
            LABELS["pairs"],
            pairs,
            index_of(pairs, stored.pairs),
            format_func=PAIR_NAMES.__getitem__,
            key=key("pairs"),
        )


def _numbers(start: CampaignRequest) -> None:
    """Controls, context, the numbers of the preview, and the seed."""
    stored = start.settings
    columns = st.columns(4)
    for column, name in zip(columns, ("bad_references", "repeats"), strict=False):
        column.number_input(
            LABELS[name.replace("_", "-")],
            0.0,
            1e6,
            float(getattr(stored, name)),
            step=0.05,
            help="Controls. Below 1: a share of the items. From 1: a number of items.",
            key=key(name),
        )
    columns[2].number_input(
        "Batch",
        2,
        1000,
        stored.batch,
        help="In items. A control comes half a batch after its original.",
        key=key("batch"),
    )
    columns[3].number_input("Sentences of context", 0, 20, stored.context, key=key("context"))
    field_error("bad-references", "repeats", "batch", "context")
    left, middle, right = st.columns(3)
    left.number_input(
        "Smallest difference that matters",
        min_value=0.0,
        value=stored.delta,
        placeholder="the protocol's usual one",
        help="In points of the protocol's scale.",
        key=key("delta"),
    )
    middle.number_input(
        "Minutes per item",
        min_value=0.0,
        value=stored.minutes_per_item,
        placeholder="by a rule of thumb",
        key=key("minutes_per_item"),
    )
    # whole numbers above 2^53 are not exact in a browser
    seed = min(start.seed, 2**53 - 1)
    right.number_input(
        LABELS["seed"], 0, 2**53 - 1, seed, help="Draws items, controls and orders.", key=key("seed")
    )
    field_error("delta", "minutes-per-item", "seed")


def _errors(start: CampaignRequest, with_errors: Sequence[str], study: str) -> None:
    """The taxonomy, and what is marked before a rater begins."""
    left, right = st.columns(2)
    left.file_uploader(
        "Taxonomy of errors (YAML or JSON)",
        ["yaml", "yml", "json"],
        help="Severities, categories and weights. Without a file: the protocol's defaults, or the draft's.",
        key=key("taxonomy"),
    )
    right.file_uploader(
        f"{LABELS['proposals']} (JSON Lines)",
        ["jsonl", "json"],
        help="For each output, the errors that a metric, say, found. To change a draft, give the file again.",
        key=key("proposals"),
    )
    field_error("taxonomy", "proposals")
    proposed_by = start.settings.proposed_by
    metric = None if proposed_by is None else proposed_by.metric
    st.selectbox(
        LABELS["proposals-from"],
        with_errors,
        with_errors.index(metric) if metric in with_errors else None,
        placeholder="none" if with_errors else "no metric of this study has found errors",
        disabled=not with_errors,
        help="Instead of a file: marked before raters begin, who keep, change or delete them.",
        key=key("proposals_from", study),
    )
    field_error("proposals-from")


def _texts(start: CampaignRequest) -> None:
    st.header("What raters read", anchor=False)
    st.text_area("Instructions (Markdown)", start.instructions, height=160, key=key("instructions"))
    st.text_area(
        "What raters agree to before they begin (Markdown)", start.settings.consent, key=key("consent")
    )
    st.text_area(
        LABELS["questions"],
        write_questions(start.settings.questions),
        placeholder="Which language did you grow up with? | German | English | another\n"
        "Years of translating | number",
        help="Asked before the first item. One per line, then the answers, each after a bar (|); `number` "
        "for a number, `optional` for what may be left blank.",
        key=key("questions"),
    )
    field_error("questions")
    columns = st.columns(3)
    fields = (
        ("contact", "Whom raters ask", "name and e-mail address"),
        ("completion_code", "Completion code", "shown after the last item"),
        ("completion_url", "Return address", "https://app.prolific.com/submissions/complete?cc={code}"),
    )
    for column, (name, label, example) in zip(columns, fields, strict=True):
        with column:
            st.text_input(label, getattr(start.settings, name), placeholder=example, key=key(name))
            field_error(name.replace("_", "-"))
    left, middle, right = st.columns(3)
    about = (
        (left, "tutorial", "Tutorial", "Items with accepted answers, which every rater does first."),
        (middle, "attention", "Attention checks", "Items with known answers, mixed among the others."),
    )
    for column, name, label, told in about:
        kept = len(getattr(start.settings, name))
        column.file_uploader(
            f"{label} (YAML or JSON)",
            ["yaml", "yml", "json"],
            help=told + (f" Without a file, the draft keeps its {counted(kept, 'item')}." if kept else ""),
            key=key(name),
        )
    right.file_uploader(
        f"{LABELS['documents']} (text)",
        ["txt", "docs", "tsv"],
        help="One line per segment: the name of its document, or DOMAIN TAB DOCUMENT. To change a draft, "
        "give the file again.",
        key=key("documents"),
    )
    field_error("tutorial", "attention", "documents")
    columns = st.columns(3)
    columns[0].number_input(
        "Items from one attention check to the next",
        1,
        1000,
        start.settings.attention_every,
        key=key("attention_every"),
    )
    columns[1].number_input(
        "Share of attention checks to pass",
        0.01,
        1.0,
        start.settings.attention_share,
        step=0.05,
        key=key("attention_share"),
    )
    columns[2].text_input(
        "Code for those who fail them",
        start.settings.failing_code,
        placeholder="the completion code",
        key=key("failing_code"),
    )
    field_error("attention-every", "attention-share", "failing-code")
    left, right = st.columns(2)
    left.file_uploader(
        f"{LABELS['media']} (JSON Lines)",
        ["jsonl", "json"],
        help="A list of image, audio and video files: beside which segment, document, practice item or "
        "attention check each is shown. To change a draft, give the list and the files again.",
        key=key("media"),
    )
    right.file_uploader(
        "The files of this list",
        MEDIA_ENDINGS,
        accept_multiple_files=True,
        help="All of them, named as in the list, without folders; captions of a.mp3 in a.vtt.",
        key=key("media_files"),
    )
    field_error("media")


def index_of(known: Sequence[str], wanted: str | None) -> int:
    return list(known).index(wanted) if wanted is not None and wanted in known else 0
