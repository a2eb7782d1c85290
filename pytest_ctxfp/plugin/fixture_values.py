"""Values of fixtures for golden items: looking one up costs as much as reading a stored answer."""

from __future__ import annotations

from collections import defaultdict

import pytest


class FixtureValues:
    """Values of fixtures by name and golden file; what pytest ends under a name is forgotten."""

    def __init__(self) -> None:
        self._values: defaultdict[str, dict[pytest.Collector | None, object]] = defaultdict(dict)

    def by_file(self, name: str) -> dict[pytest.Collector | None, object]:
        """Return what a fixture gives the items of each golden file, to be added to by who looks it up."""
        return self._values[name]

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """Forget a value that has ended."""
        if fixturedef.argname in self._values:
            del self._values[fixturedef.argname]


FIXTURE_VALUES = pytest.StashKey[FixtureValues]()
