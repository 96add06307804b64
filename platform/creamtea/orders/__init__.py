"""Requests to the engine: submit, cancel or retry a study.

They are rows that a controller finds, so that the web app can do what the command line does without knowing
how steps run.
"""
