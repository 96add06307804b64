"""The columns of a study's own tables; analyses declare theirs, those of campaigns are in `human/`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from creamtea.contract.columns import Column
from creamtea.methods.training import SelectBy
from creamtea.report.model import Fact, Facts


def meanings(columns: Iterable[Column]) -> tuple[Facts, ...]:
    """What columns mean, by title: their signatures, or what is measured. Nothing where no column says it."""
    explained: dict[tuple[str, bool], dict[str, None]] = {}  # tables may have columns of one title
    for column in columns:
        if words := column.signature or column.note:
            explained.setdefault((column.title, bool(column.signature)), {})[words] = None
    facts = tuple(Fact(title, "; ".join(words), code) for (title, code), words in explained.items())
    return (Facts("columns", "Columns", facts, folded=True),) if facts else ()


_RECALL = "share of the unique reference subwords{} that the selected vocabulary holds; 100 for a full one"
# of outputs without references
AGREEMENT = (
    Column("agreement", "agreement", 1, note="chrF2 with each other system's outputs, both directions"),
    Column("length_others", "length to others", 3, note="characters over the mean of the other systems'"),
    Column("length_source", "length to source", 3, note="characters over those of the source"),
)
RECALL_WORDS = Column(
    "recall_idiom_words",
    "idiom recall",
    1,
    "higher",
    100.0,
    "%",
    note="share of the unique subwords of the idioms' translations that are selected from the idioms' words "
    "alone (NVS paper, section 2.3)",
    group="recall",
)
RECALL_IDIOM = Column(
    "recall_idiom",
    "idiom recall in context",
    1,
    "higher",
    100.0,
    "%",
    note=_RECALL.format(" of the idioms"),
    group="recall",
)
RECALL_MACRO = Column(
    "recall_macro",
    "recall per idiom in context",
    1,
    "higher",
    100.0,
    "%",
    note="mean over distinct idioms of the recall within each",
    group="recall",
)
RECALL_SENTENCE = Column(
    "recall_sentence", "recall", 1, "higher", 100.0, "%", note=_RECALL.format(""), group="recall"
)
SELECTED = Column(
    "selected_size", "selected", 0, "lower", note="mean size of a sentence's vocabulary", group="recall"
)
P50 = Column(
    "latency_p50", "p50", 1, "lower", 1.0, "ms", note="median latency of a sentence", group="latency"
)
LATENCY = (
    P50,
    *(
        Column(
            f"latency_p{percent}",
            f"p{percent}",
            1,
            "lower",
            1.0,
            "ms",
            note=f"{percent} % of the sentences take less",
            group="latency",
        )
        for percent in (90, 99)
    ),
)
SPEED = Column(
    "sentences_per_second", "sentences/s", 2, "higher", note="mean over repetitions", group="latency"
)
LATENCY_MEANS = (
    Column("latency_mean", "mean", 1, "lower", 1.0, "ms"),
    *(replace(column, key=column.key.replace("_p", "_mean_p"), note="") for column in LATENCY),
    SPEED,
)


def latency_columns(batch_size: int) -> tuple[Column, ...]:
    """Of the systems' table."""
    if batch_size == 1:
        return LATENCY
    of_batch = f" of a batch of {batch_size} sentences"
    return (*(replace(column, note=f"{column.title}{of_batch}") for column in LATENCY), SPEED)


_OF_DEVELOPMENT = "of greedy translations of the development text, by the model that is kept"
_BLEU = Column(
    "dev_bleu", "dev BLEU", 1, "higher", note=f"{_OF_DEVELOPMENT}; of its first 500 lines if the loss selects"
)
DEVELOPMENT: dict[SelectBy, Column] = {
    "loss": _BLEU,
    "bleu": _BLEU,
    "per": Column("dev_per", "dev PER", 2, "lower", note=_OF_DEVELOPMENT),
    "levenshtein": Column("dev_levenshtein", "dev Levenshtein distance", 2, "lower", note=_OF_DEVELOPMENT),
}
_DEV_LOSS = "mean per target subword (softmax, SCONES: nats); lower is better within one objective"


def training_columns(select_by: Iterable[SelectBy]) -> tuple[Column, ...]:
    """Of trainings whose models are selected by these: BLEU says nothing of single words."""
    return (
        Column("updates", "updates", 0, note="changes of the weights until the training ended"),
        Column("dev_loss", "dev loss", 3, note=_DEV_LOSS),
        *dict.fromkeys(DEVELOPMENT[chosen] for chosen in select_by),
        Column("seconds", "seconds", 0, note="of updates, over all attempts; validations not included"),
        Column("tokens_per_second", "tokens/s", 0, note="target subwords per such second"),
        Column("parameters", "parameters", 0, note="weights of the model"),
        Column("left_out", "left out", 0, note="training pairs with too many subwords on a side"),
    )


PAIRS = (
    Column("train_read", "training pairs read", 0),
    Column(
        "train_kept", "training pairs kept", 0, note="with those that repetition adds or that are made up"
    ),
    Column("train_added", "added by repetition", 0),
    Column("train_made_up", "made up", 0),
    Column("dev_read", "development pairs read", 0),
    Column("dev_kept", "development pairs kept", 0),
)
