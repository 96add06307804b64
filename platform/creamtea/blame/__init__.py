"""Where a marked error comes from: the vocabulary selection, the search or the model."""
