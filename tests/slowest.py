"""The test files that take longest, the longest first, so that none of them is what a whole run waits for.

By processor time of the file and of all that it starts; those of less than 20 seconds do not matter.
"""

from __future__ import annotations

SLOWEST = (
    "e2e/test_whole_study.py",
    "webapp/test_accessible.py",
    "engine/test_cluster.py",
    "engine/test_ray.py",
    "webapp/test_document_board.py",
    "training/test_trainer.py",
    "cli/test_running.py",
    "human/test_aiming.py",
    "wheel/test_wheel.py",
    "human/exchange/test_round_trip.py",
    "training/test_group.py",
    "e2e/test_word_study.py",
    "e2e/test_all_methods.py",
)
