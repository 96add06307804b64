"""The commands of the documents are run, in the order of each document, as a reader would.

The comment above a block says where its commands are not run here:
- `<!-- not run: REASON -->`: it needs a program that no test has, and its lines of creamtea are parsed;
- `<!-- run by TEST -->`: by that file of tests.
A block of `text` directly below commands is what they print: compared but for white space and numbers, `…`
stands for anything. `<!-- not compared: REASON -->` between them says why it is not.
A block with a name (`yaml study.yaml`) is a file of the reader's. Whatever else the commands need is in
`reader_folder.py`; `reader.py` says what stands for what costs too much.
"""

import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import boto3
import pytest
from fenced import DOCUMENTS, ROOT, Fenced, commands, fenced
from reader import PROGRAMS, Reader, printed_lines
from reader_folder import make_files

pytestmark = pytest.mark.slow

SHELL = ("sh", "console")
HERE = ("creamtea", "export", "cd", "make", "pip", *PROGRAMS)
POSTGRES = "postgresql+psycopg://USER:PASSWORD@HOST/creamtea"
BUCKET = "s3://BUCKET/PREFIX"
S3 = "https://s3.example.org"
HELP = ROOT / "docs" / "reference" / "commands.md"
SYSTEMS = "softmax-greedy,softmax-lexicon"
CREATE = f"creamtea campaign create {{}} --study demo --test-set test --systems {SYSTEMS} --items 4"


def launched(name: str, options: str = "") -> list[str]:
    return [f"{CREATE.format(name)} {options}".strip(), f"creamtea campaign launch {name}"]


FIRST, MARKED = launched("first"), launched("esa-demo", "--protocol esa")
# raters come at the launch: more than they are leave something for those who are invited
INVITING = launched("first", "--ratings 9")
SUBMIT = "creamtea submit studies/demo.yaml --set metrics.1.word_order=2"
PROGRAMME = [
    "creamtea programme init wmt -o programme.yaml",
    "creamtea programme create programme.yaml",
    "creamtea programme launch programme",
]
# what a reader has done before
BEFORE = {
    "docs/exchange.md": [*FIRST, *MARKED],
    "creamtea cancel": [SUBMIT],
    "creamtea retry": [SUBMIT, "creamtea cancel demo"],
    "creamtea blame": [*MARKED, *launched("da-demo", "--protocol da")],
    "creamtea verify": ["creamtea bundle demo"],
    "creamtea report": ["creamtea run studies/demo.yaml --set name=bigger --quiet"],
    "creamtea links revoke": ["creamtea link"],
    "creamtea campaign validate": ["creamtea campaign init demo -o first.yaml"],
    "creamtea campaign create": ["creamtea campaign init demo -o first.yaml"],
    "creamtea campaign preview": FIRST[:1],
    "creamtea campaign launch": FIRST[:1],
    "creamtea campaign rm": FIRST[:1],
    "creamtea campaign export": [*FIRST, *MARKED],
    "creamtea campaign import": [*FIRST, "creamtea campaign export first -o first"],
    "creamtea campaign link": INVITING,
    "creamtea campaign disputes": launched("first", "--ratings 2"),
    "creamtea campaign reopen": [*FIRST, "creamtea campaign close first"],
    "creamtea campaign raters reopen": INVITING,  # of which anna has skipped one
    "creamtea campaign raters include": [
        *FIRST,
        "creamtea campaign raters exclude first --rater anna --reason 'one score only'",
    ],
    "creamtea campaign": FIRST,
    "creamtea programme init": [],
    "creamtea programme validate": PROGRAMME[:1],
    "creamtea programme create": PROGRAMME[:1],
    "creamtea programme launch": PROGRAMME[:2],
    "creamtea programme rm": [*PROGRAMME, "creamtea programme close programme"],
    "creamtea programme": PROGRAMME,
}
# imports of files that are others', and which tests read such files
IMPORTED = {
    "wmt22": "test_appraise.py",
    "deen": "test_appraise.py",
    "ted": "read.txt",
    "wmt23": "test_mt_metrics_eval.py",
    "fox": "test_pearmut.py",
}


def is_record(document: Path) -> bool:
    return "results" in (document.stem, *(folder.name for folder in document.parents))  # of what was run


def excuse(block: Fenced) -> str:
    """Why its commands are not run here; "" where they are. AssertionError for one that is not needed."""
    test = re.fullmatch(r"run by (\S+)", block.mark)
    if test:
        assert block.document.stem in (ROOT / test[1]).read_text(encoding="utf-8"), f"{block}: {block.mark}"
        return block.mark
    reason = re.fullmatch(r"not run: .{10,}", block.mark)
    if reason is None:
        return ""
    lines = [line.split() for line in commands(block)]
    needed = any(words[0] not in HERE or "--address" in words for words in lines)
    assert needed, f"{block}: each of its commands can be run here: without `{block.mark}`"
    return block.mark


FOLLOWED = [
    document
    for document in DOCUMENTS
    if not is_record(document) and any(block.language in SHELL for block in fenced(document))
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder in which the demo has been run."""
    folder = tmp_path_factory.mktemp("reader")
    make_files(folder)
    Reader(folder, set()).run("creamtea run studies/demo.yaml --quiet", "the demo")
    return folder


@pytest.fixture(scope="module")
def served() -> set[str]:
    return set()


@pytest.fixture(scope="module")
def prepared(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Folders of a reader who has run some commands before. Many examples share one: it is made once."""

    @cache
    def folder_after(*lines: str) -> Path:
        folder = shutil.copytree(finished, tmp_path_factory.mktemp("before") / "reader", symlinks=True)
        for line in lines:
            Reader(folder, set()).run(line, f"before: {line}")
        return folder

    return folder_after


@pytest.fixture
def reader_of(prepared: Callable[..., Path], served: set[str], tmp_path: Path) -> Callable[[str], Reader]:
    """A reader of this document or of the help of this command, in a folder of their own."""

    def reader(name: str) -> Reader:
        group = " ".join(name.split()[:2])
        before = prepared(*(BEFORE[name] if name in BEFORE else BEFORE.get(group, [])))
        return Reader(shutil.copytree(before, tmp_path / "reader", symlinks=True), served)

    return reader


@pytest.fixture
def addresses(document: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """Of a database and a bucket, where the document uses them."""
    text, found = document.read_text(encoding="utf-8"), {}
    if POSTGRES in text:
        found[POSTGRES] = request.getfixturevalue("postgres_url")
    if BUCKET in text:
        found |= {S3: request.getfixturevalue("s3_endpoint"), BUCKET: "s3://creamtea-documents/artefacts"}
        keys = {"aws_access_key_id": "KEY", "aws_secret_access_key": "SECRET"}  # the document's
        client = boto3.client("s3", endpoint_url=found[S3], region_name="us-east-1", **keys)
        client.create_bucket(Bucket="creamtea-documents")
    return found


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(path, marks=pytest.mark.postgres if POSTGRES in path.read_text("utf-8") else ())
        for path in FOLLOWED
    ],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_a_reader_can_follow_the_document(
    document: Path, reader_of: Callable[[str], Reader], addresses: dict[str, str]
) -> None:
    reader = reader_of(document.relative_to(ROOT).as_posix())
    reader.addresses = addresses
    blocks = list(fenced(document))
    for block, below in zip(blocks, [*blocks[1:], None], strict=True):
        shown = below is not None and below.language == "text" and below.follows
        if block.language in SHELL:
            if not excuse(block):
                reader.follow(block, shown)
                if below is not None and shown:
                    compare(below, reader.printed)
        elif block.name:
            (reader.place / block.name).write_text(block.text, encoding="utf-8")


def compare(block: Fenced, printed: str) -> None:
    rest = " ".join(printed.split())
    missing = ""
    for pattern in printed_lines(block.text):
        found = pattern.search(rest)
        if found is None:
            missing = pattern.pattern
            break
        rest = rest[found.end() :]
    if block.mark.startswith("not compared: "):
        assert missing, f"{block}: it is what is printed: without `{block.mark}`"
    else:
        assert not missing, f"{block}: {missing} is not what is printed:\n{printed}"


def sections() -> dict[str, list[str]]:
    """The examples of each command's help."""
    parts = HELP.read_text(encoding="utf-8").split("\n## ")[1:]
    examples = {part.partition("\n")[0]: part.partition("\nExample")[2] for part in parts}
    return {
        name: [" ".join(found.split()) for found in re.findall(r"`((?:[A-Z_]+=\S+ )?creamtea [^`]+)`", text)]
        for name, text in examples.items()
    }


@pytest.mark.parametrize("name", sections())
def test_the_examples_of_a_help_text_run(name: str, reader_of: Callable[[str], Reader]) -> None:
    examples = sections()[name]
    assert examples, f"{name} --help has no example"
    reader = reader_of(name)
    for line in examples:
        elsewhere = re.match(r"creamtea campaign import (\S+)", line)
        if elsewhere and elsewhere[1] in IMPORTED:
            assert (ROOT / "tests" / "human" / "formats" / IMPORTED[elsewhere[1]]).is_file()
        else:
            reader.run(line, line)
