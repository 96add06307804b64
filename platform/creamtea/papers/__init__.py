"""The tables and figures of the three papers as data: a folder for each paper, and in
it a YAML file for each of them."""
