"""The analyses: settings, parameters of their steps, what the steps leave, and what reports show."""
