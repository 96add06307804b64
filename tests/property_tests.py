"""Settings of Hypothesis for all tests."""

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

# A busy machine is no failure: Hypothesis would take 0.2 seconds for an example, and slow examples, for one.
_EITHER = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make test` takes the same few examples each time: what passes at one commit does not fail at the next by
# chance.
settings.register_profile("repeatable", _EITHER, derandomize=True, max_examples=30)
# `make properties` looks for examples that fail: new ones, and many of them. Where a test sets a number, each
# of its examples is slow.
settings.register_profile("search", _EITHER, max_examples=1000)
# `make test-fast` takes the first of them.
settings.register_profile("quick", _EITHER, derandomize=True, max_examples=8)
settings.load_profile("repeatable")

_constants_of_loaded_modules = providers._get_local_constants


def _constants() -> Constants:
    """Return the constants that Hypothesis mixes into its draws.

    It takes those of all our modules that are loaded by then. Examples would therefore depend on the tests
    that ran before in the same process, so that repeatable ones do without.
    """
    return Constants() if settings().derandomize else _constants_of_loaded_modules()


providers._get_local_constants = _constants

# For tests whose examples may share what a fixture made; a test's list takes the place of the profile's.
FIXTURES_ARE_SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
