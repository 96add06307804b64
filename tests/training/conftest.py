from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # so that these tests can import `small_trainings`


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
