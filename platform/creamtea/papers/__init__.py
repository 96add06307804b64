"""The tables and figures of the three papers as data: a folder per paper, a YAML file per exhibit."""
