"""The test files that take longest, the longest first, so that none of them is what a whole run waits for.

By the time that they take on a quiet machine; those of less than 20 seconds do not matter.
"""

from __future__ import annotations

SLOWEST = (
    "e2e/test_whole_study.py",
    "documents/test_running_examples.py",
    "engine/test_groups_on_a_cluster.py",
    "webapp/test_accessible.py",
    "engine/test_ray.py",
    "cli/test_running.py",
    "webapp/test_organiser_browser.py",
    "models/test_marian.py",
    "wheel/test_wheel.py",
    "plugins/test_extending.py",
    "e2e/test_all_methods.py",
    "e2e/test_word_study.py",
    "engine/test_cluster.py",
    "webapp/test_rating_board.py",
    "webapp/test_try_out_browser.py",
    "webapp/test_rating_safety.py",
    "webapp/test_rating_flow.py",
    "webapp/test_marked_errors.py",
    "metrics/test_comet.py",
    "stats/test_adaptive.py",
    "webapp/test_report_page.py",
    "papers/test_documents.py",
    "human/test_adaptive.py",
    "webapp/test_beside_source.py",
    "webapp/test_away.py",
    "training/test_trainer.py",
    "blame/test_blame.py",
    "webapp/test_document_board.py",
    "store/test_migrations.py",
    "webapp/test_organiser_rights.py",
    "webapp/test_oidc.py",
)
