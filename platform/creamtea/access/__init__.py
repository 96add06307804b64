"""Who may see and do what: links, sessions, sign-in, rights, and the log of decisions."""
