"""Values of fixtures for golden items: looking one up costs as much as reading a stored answer."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


class FixtureValues:
    """Keeps a fixture's value for the golden items of a file, until pytest ends a fixture of that name."""

    def __init__(self) -> None:
        self._values: defaultdict[str, dict[pytest.Collector | None, object]] = defaultdict(dict)

    def get(self, name: str, item: pytest.Item, look_up: Callable[[], object]) -> object:
        """Return what a fixture gives a golden item, which has no parameters of its own to choose by.

        Args:
            name: the fixture's.
            item: the golden item.
            look_up: asks pytest for the value.
        """
        known = self._values[name]
        if item.parent not in known:
            known[item.parent] = look_up()
        return known[item.parent]

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """Forget a value that has ended."""
        if fixturedef.argname in self._values:
            del self._values[fixturedef.argname]


FIXTURE_VALUES = pytest.StashKey[FixtureValues]()
