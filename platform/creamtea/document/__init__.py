"""Written documents: YAML with a place for every value, their mistakes, and the values that they share."""
