"""The test files that take longest, the longest first, so that none of them is what a whole run waits for.

By the time that they take on a quiet machine; those of less than 20 seconds do not matter.
"""

from __future__ import annotations

SLOWEST = (
    "e2e/test_whole_study.py",
    "engine/test_groups_on_a_cluster.py",
    "webapp/test_accessible.py",
    "documents/test_running_examples.py",
    "webapp/test_marked_errors.py",
    "webapp/test_keyboard.py",
    "webapp/test_document_board.py",
    "engine/test_ray.py",
    "blame/test_blame.py",
    "engine/test_cluster.py",
    "webapp/test_rating_safety.py",
    "wheel/test_wheel.py",
    "e2e/test_all_methods.py",
    "e2e/test_word_study.py",
    "training/test_trainer.py",
    "cli/test_running.py",
    "human/test_aiming.py",
    "webapp/test_organiser_browser.py",
    "plugins/test_extending.py",
    "human/exchange/test_round_trip.py",
    "metrics/test_comet.py",
    "webapp/test_rating_flow.py",
    "training/test_group.py",
)
