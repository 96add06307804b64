"""What a study may name: one class per method, which owns every fact about it.

A method's class gives its name, how a report describes it, what it needs and excludes, which of its settings
are mistakes, and which module of the workers carries it out. Planning, checks, reports and workers ask the
class; none of them lists kinds. Plug-ins add classes by entry points (docs/extending.md).
"""
