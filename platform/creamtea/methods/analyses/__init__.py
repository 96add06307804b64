"""The analyses, one file each: settings, parameters of its steps, what they leave, and what reports show."""
