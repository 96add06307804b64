"""Documents: YAML with a place for every value, mistakes, and shared types of values."""
