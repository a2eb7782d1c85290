"""Snapshot files as this process read them: each once, when it is first asked for."""

from __future__ import annotations

import pytest

from pytest_ctxfp._snapshot_file import SnapshotReader

READER = pytest.StashKey[SnapshotReader]()


def get_snapshot_reader(config: pytest.Config) -> SnapshotReader:
    """Return the reader of this process."""
    return config.stash.setdefault(READER, SnapshotReader())
