"""The analyses: their settings, the parameters and results of their steps, and their tables and plots."""
