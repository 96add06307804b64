"""Steps of variants and systems: training, decoding, scores, comparisons, recall and latency."""

from __future__ import annotations

from creamtea.contract.step import StepKind, StepParams
from creamtea.document.values import Positive, Seed, unstated
from creamtea.error_spans import SPANS_FILE
from creamtea.methods.architectures import Architecture, Nvs
from creamtea.methods.metrics import LatencyProtocol, Metric, Recall, Significance
from creamtea.methods.objectives import Objective
from creamtea.methods.searches import InPrecision, Precision, Search
from creamtea.methods.selections import Selection
from creamtea.methods.texts import Languages
from creamtea.methods.training import Training
from creamtea.scorers import ScorerPins
from creamtea.shipped import FILES as CTRANSLATE2_FILES
from creamtea.steps.texts import Digests


class ImportModelParams(StepParams):
    """The folder of a model, in one of two formats. `digest`: of all files that the step reads."""

    marian: str | None = unstated(None)
    ctranslate2: str | None = unstated(None)
    digest: str

    @property
    def path(self) -> str:
        return self.marian or self.ctranslate2 or ""


IMPORT_MODEL = StepKind(
    "import_model",
    3,  # 1 gave Marian's own files the positions of transformers; 2 T5's sources in CTranslate2 no end
    "import a model",
    ImportModelParams,
    worker="creamtea_workers.steps.train:import_model",
    inputs={},
    files={
        "model.safetensors": "weights",
        "model.json": "objective, architecture, nvs, vocabulary_size, from which the model is rebuilt",
        "marian_subwords.json": "a SentencePiece model for each side, and the pieces by id",
        **dict.fromkeys(CTRANSLATE2_FILES, "copied from a CTranslate2 folder"),
    },
    metrics={
        "parameters": "numbers in the model",
        "vocabulary_size": "the target's; pad 0, unk 1, bos 2, eos 3, then the model's own order",
    },
)


class TrainParams(StepParams):
    objective: Objective
    architecture: Architecture
    nvs: Nvs | None
    training: Training
    seed: Seed
    # sacreBLEU's tokenizer for development BLEU
    tokenize: str = unstated("13a")


TRAIN = StepKind(
    "train",
    4,
    "train a variant",
    TrainParams,
    worker="creamtea_workers.steps.train",
    timeout_minutes=30 * 24 * 60,
    inputs={
        "corpus": "development text",
        "subwords": "subwords",
        "encode": "both texts as tokens",
        "initial": "the variant that an adaptation starts from",
    },
    files={
        "model.safetensors": "weights",
        "model.json": "objective, architecture, nvs, vocabulary_size, from which the model is rebuilt",
    },
    metrics={
        "dev_loss": "per target subword; with `freeze`, the NVS head's per sentence",
        "dev_bleu": "greedy, over the first development sentences, or over all with `select_by`; not "
        "with `freeze`",
        "dev_perplexity": "per target subword, without label smoothing, with `select_by: perplexity`",
        "dev_per": "greedy, mean over languages, with `select_by: per`",
        "dev_levenshtein": "greedy, mean over languages, with `select_by: levenshtein`",
        "updates": "updates of the optimiser",
        "tokens_per_second": "target subwords per second",
        "parameters": "trained numbers",
        "left_out": "training pairs longer than max_tokens",
    },
    points={
        "train_loss": "over updates (which begin at 0 in an adaptation)",
        **dict.fromkeys(("dev_loss", "dev_perplexity", "dev_bleu", "dev_per"), "over updates"),
        **dict.fromkeys(("dev_levenshtein", "learning_rate"), "over updates"),
    },
    divisible=True,
)


class DecodeParams(InPrecision):
    """Parameters of a decoding.

    `languages`, `digests`, `scorer`: as in `ScoreParams`, for a search that chooses by a metric.
    """

    selection: Selection
    search: Search
    batch_size: Positive
    languages: Languages | None = unstated(None)
    digests: Digests | None = unstated(None)
    scorer: ScorerPins | None = unstated(None)


DECODE = StepKind(
    "decode",
    2,
    "translate a test set",
    DecodeParams,
    worker="creamtea_workers.steps.decode",
    inputs={
        "test_set": "segments",
        "subwords": "subwords",
        "train": "the trained variant; for an ensemble, one per seed",
        "align": "the lexicon, for selections that need one",
    },
    files={"hypotheses.jsonl": "index, text, score, length, selected_size"},
    metrics={
        "selected_size": "mean per sentence; the size of the vocabulary without a selection",
        "empty": "share of outputs without text",
        "blank_sources": "share of source lines without visible text; their outputs are empty",
        "truncated": "share of outputs cut at the length limit",
        "sentences_per_second": "search with selection, without loading, subwords and files",
    },
    divisible=True,
)


class OutputsParams(StepParams):
    """Source of the outputs: `file` with its digest, or `reference`, counted from 1.

    `limit`: the number of lines that the test set takes from its files.
    """

    file: str | None = None
    digests: Digests | None = None
    reference: Positive | None = None
    limit: Positive | None = None


OUTPUTS = StepKind(
    "outputs",
    2,
    "read outputs",
    OutputsParams,
    worker="creamtea_workers.steps.scores:copy_outputs",
    inputs={"test_set": "segments"},
    files={"hypotheses.jsonl": "index, text; score, length and selected_size are null"},
    metrics={"empty": "share of outputs without text"},
)


class ScoreParams(StepParams):
    """Parameters of a score.

    `without_reference`: the number of a reference that is scored against the others. `digests`:
    SHA-256 of a metric's checkpoint, if it is a file or a folder. `scorer` pins the program of a metric of
    kind `command`. `each_group`: also score each group of the test set.
    """

    metric: Metric
    languages: Languages
    without_reference: Positive | None = unstated(None)
    digests: Digests | None = unstated(None)
    scorer: ScorerPins | None = unstated(None)
    each_group: bool = unstated(False)


SCORE = StepKind(
    "score",
    2,
    "score with a metric",
    ScoreParams,
    worker="creamtea_workers.steps.scores:score",
    silent_minutes=24 * 60,  # scoring programs have their own time limit (docs/scorers.md)
    inputs={"test_set": "segments", "decode": "translations"},
    files={
        "segment_scores.jsonl": "index, value",
        SPANS_FILE: "index, spans: errors, if the scorer marks them",
    },
    optional=True,
)


class CompareParams(StepParams):
    metric: Metric
    significance: Significance
    languages: Languages


COMPARE = StepKind(
    "compare",
    2,
    "compare with the baseline",
    CompareParams,
    worker="creamtea_workers.steps.scores:compare",
    inputs={
        "test_set": "segments",
        "baseline": "translations of each seed, or their segment scores for a neural metric",
        "system": "the same for the system",
    },
    metrics={
        "delta": "subject: the metric; interval; detail: p_two_sided and p_randomization, which decide the "
        "marks in reports; p_value as in sacreBLEU; signature",
    },
    optional=True,
)


class PairsParams(CompareParams):
    """Parameters of comparing all pairs of systems. `outputs`: the number of inputs of each system."""

    outputs: list[int]


PAIRS = StepKind(
    "pairs",
    1,
    "compare all pairs of systems",
    PairsParams,
    worker="creamtea_workers.steps.scores:compare_pairs",
    inputs={
        "test_set": "segments",
        "systems": "translations of each system and seed, or their segment scores for a neural metric",
    },
    metrics={
        "delta": "subject: the positions of two systems (0/2: the third minus the first); otherwise as in "
        "`compare`, with the same resamples and swaps for all pairs",
    },
    optional=True,
)


AGREEMENT = StepKind(
    "agreement",
    2,
    "compare outputs with each other",
    StepParams,
    worker="creamtea_workers.steps.scores:measure_agreement",
    inputs={"test_set": "segments", "systems": "outputs of each system's first seed"},
    metrics={
        "agreement": "chrF2, mean of both directions; subject: the positions of two systems (0/2), or of one "
        "system: its mean over the others, with a bootstrap interval over segments",
        "length_others": "subject: a position; characters, divided by the other systems' mean",
        "length_source": "subject: a position; characters, divided by the source's",
    },
)


class RecallParams(InPrecision):
    """Parameters of a recall. `precision`: the model's, for selections that depend on the model."""

    selection: Selection
    sweep: Recall
    precision: Precision = unstated("fp32")


RECALL = StepKind(
    "recall",
    8,
    "recall of the selected vocabulary",
    RecallParams,
    worker="creamtea_workers.steps.selections:measure_recall",
    inputs={
        "test_set": "segments",
        "subwords": "subwords",
        "train": "the trained variant, for selections that depend on the model",
        "align": "the lexicon, for selections that need one",
    },
    metrics={
        "recall": "share of the unique reference subwords; subjects: sentence, idiom (selected from its "
        "sentence) and idiom_words (from its own words). Detail `missed` of idiom_words: `count` of `of` "
        "distinct idioms lack a subword; at most 100 are listed",
        "recall_macro": "mean over distinct idioms; subjects: idiom, idiom_words",
        "selected_size": "mean per sentence",
    },
    points={
        "recall_sentence": "over the mean size; label: the setting",
        "recall_idiom": "over the mean size; label: the setting",
        "recall_idiom_words": "over the mean size of sentences; label: the setting",
        "recall_batch": "for sentences that share the selection of a batch (study's recall.batch); likewise",
    },
)


# as a study runs them, before the analyses
KINDS = (IMPORT_MODEL, TRAIN, DECODE, OUTPUTS, SCORE, COMPARE, PAIRS, AGREEMENT, RECALL)


class TimedSystem(StepParams):
    """A system of a latency run. `model`: the position of its trained variant in the input `models`."""

    selection: Selection
    search: Search
    precision: Precision
    model: int


class LatencyParams(StepParams):
    """Parameters of a latency run. `place`: the machine that the study's `resources` ask for, if any."""

    latency: LatencyProtocol
    systems: list[TimedSystem]
    place: str | None = unstated(None)


LATENCY = StepKind(
    "latency",
    2,
    "measure latency",
    LatencyParams,
    worker="creamtea_workers.steps.latency",
    inputs={
        "test_set": "segments",
        "subwords": "subwords",
        "models": "distinct trained variants",
        "align": "the lexicon, if a system needs one",
    },
    files={"latency.jsonl": "system, sentence (the first of its batch), repetition, seconds"},
    metrics={
        f"latency_p{percent}": "ms per batch, median over repetitions; subject: position in `systems`; "
        "detail: batch size, threads, hardware, percent_of each other system with its interval"
        for percent in (50, 90, 99)
    }
    | {
        f"latency_mean_p{percent}": "the same, mean over repetitions with its t interval"
        for percent in (50, 90, 99)
    }
    | {
        "latency_mean": "ms per batch: mean over batches, then over repetitions with its t interval",
        "sentences_per_second": "mean over repetitions with its t interval",
    },
    exclusive=True,
)
