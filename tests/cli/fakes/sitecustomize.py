"""Python imports this at its start, where this folder is on the path: the fakes take over."""

import fake_steps

fake_steps.register()
