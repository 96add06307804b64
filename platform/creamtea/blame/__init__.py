"""Where an error that raters marked comes from: the vocabulary selection, the search or the model."""
