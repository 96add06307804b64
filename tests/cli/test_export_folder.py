"""Where `creamtea export` writes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from creamtea.cli.models import _writing
from creamtea.errors import InputError


def test_a_disk_that_fills_up_while_a_model_is_written_is_one_message() -> None:
    told = r"^model: cannot be written \(No space left on device\); free some"
    with pytest.raises(InputError, match=told), _writing(Path("model")):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
