"""Steps over text: corpora, test sets, subwords, alignments."""

from __future__ import annotations

from creamtea.contract.step import StepKind, StepParams
from creamtea.document.values import unstated
from creamtea.methods.corpora import Corpus
from creamtea.methods.planning import HeldOut
from creamtea.methods.test_sets import TestSet
from creamtea.methods.texts import Alignment, Languages, Subwords

Digests = dict[str, str]  # sha256 of each of the user's files, by its path as the study gives it

SEGMENTS = (
    "index, source, reference, idioms ({name, source: [from, to], target: [from, to], words}); for words "
    "also group (the language); with several references also more_references"
)


class CorpusParams(StepParams):
    """Parameters of preparing a corpus.

    `held_out`: only for corpora of text files. `unspaced`: one side's language has no blanks between words,
    so lengths are counted in characters.
    """

    corpus: Corpus
    languages: Languages
    digests: Digests
    held_out: list[HeldOut] | None = unstated(None)
    unspaced: bool = unstated(False)


CORPUS = StepKind(
    "corpus",
    1,
    "prepare corpus",
    CorpusParams,
    worker="creamtea_workers.steps.texts:prepare_corpus",
    inputs={"corpus, subwords, ibm3": "for kind `ibm3`: base corpus, subwords and tables to sample from"},
    files={
        "train.src": "source side of the training text, a sentence per line",
        "train.tgt": "target side",
        "dev.src": "source side of the development text",
        "dev.tgt": "target side",
        "dev.groups": "for words: the language of each line of dev.src",
    },
    metrics={
        "pairs": "subjects train_read, train_kept (lines of train.src), train_added (by `repeat`), "
        "train_made_up (by `hallucinated`), dev_read, dev_kept",
        "dropped": "training pairs; subjects empty, too_long, ratio, held_out, duplicate, no_translation",
    },
)


class TestSetParams(StepParams):
    """Parameters of preparing a test set. `corpus`: the sampled corpus that it is drawn from, if any."""

    __test__ = False
    test_set: TestSet
    corpus: Corpus | None
    languages: Languages
    digests: Digests


TEST_SET = StepKind(
    "test_set",
    2,
    "prepare test set",
    TestSetParams,
    worker="creamtea_workers.steps.texts:prepare_test_set",
    inputs={
        "corpus": "with `itds`: the text for the word alignment",
        "subwords, ibm3": "for kind `ibm3`: subwords and tables to sample references from",
    },
    files={"segments.jsonl": SEGMENTS},
    metrics={
        "segments": "lines of the test set",
        "idioms": "entries with the same name in a segment are pieces of one idiom",
    },
)


class OverlapParams(StepParams):
    """Parameters of a search for test sentences. `symbols`: also look for new letters and tags."""

    symbols: bool = unstated(False)


OVERLAP = StepKind(
    "overlap",
    2,
    "look for test and development sentences in the training text",
    OverlapParams,
    worker="creamtea_workers.steps.texts:measure_overlap",
    inputs={"corpus": "training text", "test_sets": "test sets, in the order of the label `test_sets`"},
    metrics={
        "seen_sources": "segments whose source is a line of train.src; subject: the position of the test "
        "set, or `dev`; detail: segments",
        "seen_pairs": "segments whose source and reference are a pair of the training text; likewise",
        "unseen": "for words: segments with a language, letter or tag that train.src lacks; likewise, and "
        "detail: languages, letters, tags",
    },
)


class SubwordsParams(StepParams):
    subwords: Subwords


SUBWORDS = StepKind(
    "subwords",
    1,
    "train subwords",
    SubwordsParams,
    worker="creamtea_workers.steps.texts:make_subwords",
    inputs={"corpus": "training text"},
    files={
        "subwords.model": "SentencePiece model; pad 0, unk 1, bos 2, eos 3",
        "vocabularies.json": "with `kind: characters`, instead: the symbols of both sides from id 4 on",
    },
    metrics={
        "vocabulary_size": "subwords, or symbols of the target",
        "sampled_pairs": "sentence pairs that the model learnt from (`sample`)",
        "source_vocabulary_size": "with `kind: characters`: symbols of the source",
    },
)


ENCODE = StepKind(
    "encode",
    1,
    "encode text",
    StepParams,
    worker="creamtea_workers.steps.texts:encode_texts",
    inputs={"corpus": "training and development text", "subwords": "subwords"},
    files={
        f"{split}.{side}.{part}.npy": meaning
        for split in ("train", "dev")
        for side in ("src", "tgt")
        for part, meaning in (
            ("tokens", "ids of all sentences, concatenated, without eos; 16 or 32 bits"),
            ("offsets", "the start of each sentence in `tokens`, and the end of the last; 64 bits"),
        )
    },
    metrics={"tokens": "per side, without eos; subjects train.src, train.tgt, dev.src, dev.tgt"},
)


class AlignParams(StepParams):
    """Parameters of an alignment. `digests`: only for an imported table."""

    alignment: Alignment
    digests: Digests | None = unstated(None)


ALIGN = StepKind(
    "align",
    1,
    "align and build the lexicon",
    AlignParams,
    worker="creamtea_workers.steps.align:align",
    inputs={"encode": "training text as tokens", "subwords": "subwords"},
    files={"lexicon.npz": "the most probable target subwords of each source subword"},
    metrics={
        "lexicon_entries": "pairs of subwords",
        "table_lines": "lines of an imported table",
        "table_lines_skipped": "lines of an imported table with a subword that the study does not have",
        "source_coverage": "share of the training text's source subwords with a row in an imported table",
    },
    points={"log_likelihood": "per target subword, over iterations of em"},
)


SHORTLIST = StepKind(
    "shortlist",
    1,
    "add the most frequent subwords to the lexicon",
    StepParams,
    worker="creamtea_workers.steps.align:make_shortlist",
    inputs={"align": "the lexicon", "encode": "training text as tokens", "subwords": "subwords"},
    files={"lexicon.npz": "the lexicon, and the subwords of the training targets, the most frequent first"},
    metrics={"frequent": "distinct subwords of the training targets"},
)


KINDS = (CORPUS, TEST_SET, OVERLAP, SUBWORDS, ENCODE, ALIGN, SHORTLIST)  # as a study runs them
