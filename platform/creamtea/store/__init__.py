"""A limit that tables and files share. Workers read it from here: they do without SQLAlchemy's import."""

# characters of an indexed text: PostgreSQL's index entries hold at most 2,704 bytes, and ours may have a
# step's key and two texts, with up to four bytes per character
MAX_INDEXED = 300
