"""The test files that take longest, the longest first, so that none of them is what a whole run waits for.

By the time that they take in a whole run on two quiet cores; those of less than 20 seconds do not matter.
"""

SLOWEST = (
    "documents/test_running_examples.py",
    "webapp/test_accessible.py",
    "e2e/test_whole_study.py",
    "engine/test_groups_on_a_cluster.py",
    "wheel/test_wheel.py",
    "webapp/test_report_page.py",
    "cli/test_running.py",
    "webapp/test_organiser_browser.py",
    "webapp/test_rating_safety.py",
    "models/test_marian.py",
    "metrics/test_comet.py",
    "webapp/test_organiser_pages.py",
    "human/test_blocks.py",
    "webapp/test_oidc.py",
    "webapp/test_rating_board.py",
    "training/test_trainer.py",
    "webapp/test_beside_source.py",
    "webapp/test_marked_errors.py",
    "webapp/test_rating_flow.py",
    "engine/test_ray.py",
    "e2e/test_all_methods.py",
    "webapp/test_away.py",
    "store/test_migrations.py",
    "plugins/test_extending.py",
    "blame/test_blame.py",
    "search/test_translator.py",
    "human/formats/test_round_trips.py",
    "webapp/test_document_board.py",
    "objectives/test_kernels.py",
)
