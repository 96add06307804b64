"""Training of one variant with one seed."""
