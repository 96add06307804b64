"""What people ask of the engine: a study submitted, cancelled or retried. All of it is rows, which a
controller finds; so the web app can do what the command line does, without knowing how steps run.
"""
