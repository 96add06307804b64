"""Settings of Hypothesis for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is no failure: Hypothesis would take 0.2 seconds for an example, and slow examples, for one.
settings.register_profile("creamtea", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("creamtea")

# For tests whose examples may share what a fixture made; a test's list takes the place of the profile's.
FIXTURES_ARE_SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
