"""Reads JSON objects by field, with an error that says which one is wrong."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime


class Fields:
    """A JSON object.

    An absent field is its type's zero, as on the side of the server, and fields that nobody asks for are
    passed over, so that a later server's answers can still be read. A field of another type is a ValueError.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{where}: want an object, not {type(value).__name__}")
        self._value: dict[str, object] = value
        self._where = where

    def _bad(self, name: str, want: str) -> ValueError:
        return ValueError(f"{self._where}.{name}: want {want}, not {type(self._value.get(name)).__name__}")

    def text(self, name: str) -> str:
        """Return a string."""
        value = self._value.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._bad(name, "a string")
        return value

    def integer(self, name: str) -> int:
        """Return a whole number."""
        value = self._value.get(name)
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._bad(name, "a whole number")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        value = self._value.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self._bad(name, "true or false")
        return value

    def _list(self, name: str) -> list[object]:
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._bad(name, "a list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        out = []
        for value in self._list(name):
            if not isinstance(value, str):
                raise self._bad(name, "a list of strings")
            out.append(value)
        return tuple(out)

    def objects(self, name: str) -> list[Fields]:
        """Return a list of objects."""
        return [Fields(v, f"{self._where}.{name}[{i}]") for i, v in enumerate(self._list(name))]

    def object(self, name: str) -> Fields:
        """Return an object; an absent one is empty."""
        return self.maybe(name) or Fields({}, f"{self._where}.{name}")

    def maybe(self, name: str) -> Fields | None:
        """Return an object, or None."""
        value = self._value.get(name)
        return None if value is None else Fields(value, f"{self._where}.{name}")

    def strings(self, name: str) -> dict[str, str]:
        """Return an object whose values are strings."""
        inner = self.object(name)
        return {key: inner.text(key) for key in inner._value}

    def time(self, name: str) -> datetime | None:
        """Return a time of RFC 3339, or None."""
        value = self.text(name)
        if value == "" or value.startswith("0001-01-01T00:00:00"):
            return None
        return _time(value)

    def base64(self, name: str) -> bytes:
        """Return bytes that stand as base64."""
        try:
            return base64.b64decode(self.text(name), validate=True)
        except binascii.Error:
            raise self._bad(name, "base64") from None


def _time(value: str) -> datetime:
    # Python before 3.11 takes neither "Z" nor fractions of other than 3 or 6 digits.
    head, zone = (value[:-1], "+00:00") if value.endswith("Z") else (value[:-6], value[-6:])
    head, _, fraction = head.partition(".")
    return datetime.fromisoformat(f"{head}.{fraction[:6]:0<6}{zone}")
