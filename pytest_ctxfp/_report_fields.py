"""Fields of an object in a file of unknown origin, read with their types checked."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._trace import FIGURE_LIMIT

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

_Name = TypeVar("_Name", bound=str)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the fields of one JSON object; a field of a wrong type is a CtxfpError that says where it is.

    Args:
        data: the object.
        place: what to call it: ``the report.cases[3]``.
    """

    data: dict[str, JSONValue]
    place: str

    @classmethod
    def of(cls, data: object, place: str) -> Reader:
        """Return a reader of a value that must be an object."""
        if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
            message = f"{place} is {reprlib.repr(data)}: it must be a JSON object"
            raise CtxfpError(message)
        return cls(data, place)

    def value(self, name: str) -> JSONValue:
        """Return a field as it is, None where it is absent."""
        return self.data.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; without a default it is required."""
        value = self.data.get(name, default)
        return value if isinstance(value, str) else self._refuse(name, "a text")

    def optional_text(self, name: str) -> str | None:
        """Return a text or None."""
        return None if self.data.get(name) is None else self.text(name)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.data.get(name, default)
        return value if isinstance(value, bool) else self._refuse(name, "true or false")

    def count(self, name: str, default: int | None = None) -> int:
        """Return a whole number of at least 0; without a default it is required."""
        value = self.data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not _is_plain(value):
            self._refuse(name, "a whole number of at least 0")
        return value

    def optional_count(self, name: str) -> int | None:
        """Return a whole number of at least 0, or None."""
        return None if self.data.get(name) is None else self.count(name)

    def optional_number(self, name: str) -> float | None:
        """Return a finite number of at least 0, or None."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_plain(value):
            self._refuse(name, "a finite number of at least 0")
        return value

    def optional_share(self, name: str) -> float | None:
        """Return a number from 0 to 1, or None."""
        value = self.optional_number(name)
        return value if value is None or value <= 1 else self._refuse(name, "a number from 0 to 1")

    def choice(self, name: str, allowed: tuple[_Name, ...]) -> _Name:
        """Return one of some names."""
        value = self.data.get(name)
        for candidate in allowed:
            if value == candidate:
                return candidate
        return self._refuse(name, "one of " + ", ".join(allowed))

    def optional_choice(self, name: str, allowed: tuple[_Name, ...]) -> _Name | None:
        """Return one of some names, or None."""
        return None if self.data.get(name) is None else self.choice(name, allowed)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; absent is empty."""
        return tuple(
            item if isinstance(item, str) else self._refuse(name, "a list of texts")
            for item in self._list(name)
        )

    def entries(self, name: str) -> list[Reader]:
        """Return readers of a list of objects; absent is empty."""
        return [
            Reader.of(item, f"{self.place}.{name}[{index}]") for index, item in enumerate(self._list(name))
        ]

    def optional_mapping(self, name: str) -> dict[str, JSONValue] | None:
        """Return an object, or None."""
        value = self.data.get(name)
        return None if value is None else Reader.of(value, f"{self.place}.{name}").data

    def mappings(self, name: str) -> dict[str, Reader]:
        """Return readers of an object of objects; absent is empty."""
        outer = self.optional_mapping(name) or {}
        return {key: Reader.of(value, f"{self.place}.{name}[{key!r}]") for key, value in outer.items()}

    def text_mapping(self, name: str) -> dict[str, str]:
        """Return an object whose values must all be texts; absent is empty."""
        return Reader(self.optional_mapping(name) or {}, f"{self.place}.{name}").all_texts()

    def all_texts(self) -> dict[str, str]:
        """Return the whole object, whose values must all be texts."""
        return {name: self.text(name) for name in self.data}

    def _list(self, name: str) -> list[JSONValue]:
        value = self.data.get(name)
        if value is None:
            return []
        return value if isinstance(value, list) else self._refuse(name, "a list")

    def _refuse(self, name: str, wanted: str) -> NoReturn:
        message = f"{self.place}.{name} is {reprlib.repr(self.data.get(name))}: it must be {wanted}"
        raise CtxfpError(message)


def _is_plain(value: float) -> bool:
    return 0 <= value < FIGURE_LIMIT
