"""What imports make of files, and why they refuse some: the tables in `read.txt` and `refused.txt`."""

from pathlib import Path

import pytest
from file_cases import Case, outcome, read_cases

FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    "case", read_cases(FOLDER / "read.txt"), ids=lambda case: f"{case.kind}-{case.title}"
)
def test_a_file_becomes_a_campaign(tmp_path: Path, case: Case) -> None:
    assert outcome(case, tmp_path) == case.expected


@pytest.mark.parametrize("case", read_cases(FOLDER / "refused.txt"), ids=lambda case: case.expected[0][9:69])
def test_a_file_is_refused(tmp_path: Path, case: Case) -> None:
    (expected,) = case.expected
    (found,) = outcome(case, tmp_path)
    assert found.startswith("refused: ")
    assert expected.removeprefix("refused: ") in found
