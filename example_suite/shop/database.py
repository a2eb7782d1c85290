"""Builds the database from the SQL files beside this module."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent


def build_database(path: Path) -> Path:
    """Create the shop's database at a path where none is yet, and return the path."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        for name in ("schema.sql", "rows.sql"):
            connection.executescript((HERE / name).read_text(encoding="utf-8"))
    return path
