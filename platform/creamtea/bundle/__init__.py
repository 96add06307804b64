"""A study with its outputs, ratings, registered plans and report in one file, to be checked offline."""
