"""The papers' tables and figures as documents: published values beside ours, with a verdict on each claim."""
