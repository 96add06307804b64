"""creamtea's data plane: what the steps of a study execute."""
