"""The test files that take longest, the longest first, so that none of them is what a whole run waits for.

By the time that they take on a quiet machine; those of less than 20 seconds do not matter.
"""

SLOWEST = (
    "webapp/test_accessible.py",
    "documents/test_running_examples.py",
    "e2e/test_whole_study.py",
    "engine/test_groups_on_a_cluster.py",
    "webapp/test_report_page.py",
    "cli/test_running.py",
    "models/test_marian.py",
    "webapp/test_organiser_browser.py",
    "webapp/test_rating_flow.py",
    "metrics/test_comet.py",
    "wheel/test_wheel.py",
    "webapp/test_rating_board.py",
    "webapp/test_marked_errors.py",
    "webapp/test_rating_safety.py",
    "stats/test_adaptive.py",
    "e2e/test_all_methods.py",
    "training/test_trainer.py",
    "blame/test_blame.py",
    "papers/test_documents.py",
    "engine/test_cluster.py",
    "webapp/test_try_out_browser.py",
    "plugins/test_extending.py",
    "store/test_migrations.py",
    "e2e/test_word_study.py",
    "webapp/test_oidc.py",
    "human/test_blocks.py",
    "webapp/test_beside_source.py",
    "engine/test_ray.py",
    "webapp/test_document_board.py",
    "webapp/test_organiser_pages.py",
    "webapp/test_away.py",
    "search/test_translator.py",
)
