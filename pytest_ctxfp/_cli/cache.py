"""``ctxfp cache``: what is stored, whether it can be used, and what may go."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._backend import StoreUnreachable
from pytest_ctxfp._cli.files import print_json, print_lines
from pytest_ctxfp._cli.project import find_project
from pytest_ctxfp._copies import REMOTE_COPIES
from pytest_ctxfp._display import escape_line, shorten_time
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp._redaction import REDACTED
from pytest_ctxfp._store import JUDGE_SHA, TraceStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._store import Lookup
    from pytest_ctxfp._trace import Trace

_HASH_PREFIX = re.compile("[0-9a-f]{4,40}")
_SHORT = 12
_COLUMNS = ("KEY", "CASE", "SAMPLE", "MODEL", "AGENT", "RECORDED", "USD", "STATUS")
_MAX_CELL = 40
_MAX_SHOWN = 4_000
_MAX_USD = 10**12


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored answer.

    Attributes:
        path: its file; of one beyond this machine only the name counts.
        place: the same, or its URL, fit to be shown.
        trace: what is in it.
        time: when it was recorded, in seconds since 1970.
    """

    path: Path
    place: str
    trace: Trace
    time: float

    @property
    def key(self) -> str:
        """The hash of its key, which is the file's name."""
        return self.path.stem

    @property
    def is_verdict(self) -> bool:
        """Whether it is a cached scorer's verdict, no answer of an agent."""
        return self.trace.agent_sha == JUDGE_SHA


@dataclass(frozen=True, slots=True)
class Corrupt:
    """A file that is named like a stored answer and gives none, and why; ``place`` is fit to be shown."""

    path: Path
    place: str
    problem: str


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands of this module."""
    from pytest_ctxfp._cli import pruning

    parser = subparsers.add_parser("cache", help="list, show, check and prune the stored answers")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_ls(commands)
    _add_show(commands)
    _add_verify(commands)
    pruning.add_prune(commands)


def _add_ls(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands, "ls", "list the stored answers, the newest first", "ctxfp cache ls --dir .ctxfp/traces"
    )
    add_dir_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_list)


def _add_show(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "show",
        "print stored answers",
        "ctxfp cache show 3f9c1a2b\n  ctxfp cache show total_orders --json",
    )
    parser.add_argument(
        "keys",
        nargs="+",
        metavar="KEY",
        help="the hash of a key, its first digits (at least 4), or a case's id: then the newest answer",
    )
    add_dir_option(parser)
    parser.add_argument("--json", action="store_true", help="print the trace as JSON, several as a list")
    parser.set_defaults(run=_show)


def _add_verify(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands, "verify", "load every stored answer and name those that are corrupt", "ctxfp cache verify"
    )
    add_dir_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_verify)


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    """Add a command whose help ends with an example."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_dir_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--dir``, the folder or the URL of the stored answers."""
    parser.add_argument(
        "--dir",
        metavar="DIR|URL",
        help="folder of stored answers, or a URL such as s3://bucket/traces (default: the environment's"
        " CTXFP_CACHE_DIR, else ctx_cache_dir of pytest's ini file, else .ctxfp/traces)",
    )


def open_store(given: str | None) -> TraceStore:
    """Return the store that a command reads.

    Args:
        given: what ``--dir`` says.

    Raises:
        CtxfpError: it names no folder, or a URL that can't be reached. A folder of the project that isn't
            there yet holds no answers.
    """
    project = find_project()
    place = project.cache_dir(given)
    if isinstance(place, str):
        return _open_remote(place, project.rootdir / REMOTE_COPIES)
    if given and not place.is_dir():
        message = f"{given}: no such folder: correct --dir"
        raise CtxfpError(message)
    return TraceStore(place, CacheMode.REPLAY)


def _open_remote(url: str, copies: Path) -> TraceStore:
    """Return the store behind a URL; copies are used and kept where runs have kept some."""
    store = TraceStore(url, CacheMode.REPLAY, copies=copies if copies.is_dir() else None)
    try:
        store.hashes()
    except StoreUnreachable as error:
        raise CtxfpError(str(error)) from None
    return store


def read_store(store: TraceStore) -> tuple[list[Stored], list[Corrupt]]:
    """Return all stored answers, the newest first, and the corrupt files, by name.

    Raises:
        OSError: the folder can't be listed.
        CtxfpError: a store that has ceased to answer.
    """
    stored: list[Stored] = []
    corrupt: list[Corrupt] = []
    for name, found in _read_files(store):
        path, place = store.dir / name, store.place_of(name)
        if found.trace is not None:
            stored.append(Stored(path, place, found.trace, store.recorded_time(found.trace, name)))
        elif found.problem is not None:
            corrupt.append(Corrupt(path, place, found.problem))
    return sorted(stored, key=lambda item: (-item.time, item.key)), corrupt


def read_traces(store: TraceStore) -> Iterator[tuple[Trace, str]]:
    """Yield all stored answers, and the name of each one's file, sorted by that.

    Raises:
        OSError: the folder can't be listed.
        CtxfpError: a store that has ceased to answer.
    """
    return ((found.trace, name) for name, found in _read_files(store) if found.trace is not None)


def _read_files(store: TraceStore) -> Iterator[tuple[str, Lookup]]:
    try:
        yield from store.lookups()
    except StoreUnreachable as error:
        raise CtxfpError(str(error)) from None
    if store.outage is not None:  # what can't be fetched looks like what isn't there
        raise CtxfpError(store.outage)


def known_cost(trace: Trace) -> float | None:
    """Return what an answer cost in USD; None where that is unknown, or no amount that anybody pays."""
    cost = trace.cost
    return float(cost) if cost is not None and cost <= _MAX_USD else None


def sum_costs(stored: Iterable[Stored]) -> str:
    """Return what answers cost: ``0.0400 USD``, ``0.0400 USD and 2 of unknown cost``."""
    costs = [known_cost(item.trace) for item in stored]
    known = [cost for cost in costs if cost is not None]
    n_unknown = len(costs) - len(known)
    if n_unknown and not known:
        return "an unknown cost"
    return f"{sum(known):.4f} USD" + (f" and {n_unknown} of unknown cost" if n_unknown else "")


def count(n: int, noun: str) -> str:
    """Return a number and its noun: ``1 answer``, ``2 answers``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def table_lines(stored: Iterable[Stored]) -> list[str]:
    """Return a table of stored answers.

    Example::

        KEY           CASE    SAMPLE  MODEL   AGENT         RECORDED                 USD     STATUS
        3f9c1a2b4d5e  orders  0       stub-1  9c1a2b4d5e3f  2026-11-30 19:21:54 UTC  0.0200  ok
    """
    rows = [_COLUMNS, *(_cells(item) for item in stored)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _cells(item: Stored) -> tuple[str, ...]:
    trace = item.trace
    return (
        item.key[:_SHORT],
        escape_line(trace.case_id, limit=_MAX_CELL),
        str(trace.sample),
        escape_line(trace.model, limit=_MAX_CELL),
        escape_line(trace.agent_sha, limit=_SHORT + 1).rstrip("…"),
        shorten_time(trace.recorded_at) if trace.recorded_at else "-",
        "-" if (cost := known_cost(trace)) is None else f"{cost:.4f}",
        "verdict" if item.is_verdict else trace.status,
    )


def to_json(item: Stored) -> dict[str, JSONValue]:
    """Return what a list says of a stored answer."""
    trace = item.trace
    return {
        "key": item.key,
        "case_id": trace.case_id,
        "sample": trace.sample,
        "model": trace.model,
        "agent_sha": trace.agent_sha,
        "recorded_at": trace.recorded_at,
        "cost": trace.cost,
        "status": trace.status,
        "is_verdict": item.is_verdict,
    }


def _list(arguments: argparse.Namespace) -> int:
    store = open_store(arguments.dir)
    stored, corrupt = read_store(store)
    if arguments.json:
        listed: list[JSONValue] = [to_json(item) for item in stored]
        print_json({"dir": store.place, "traces": listed, "corrupt": len(corrupt)})
        return 0
    if stored:
        print_lines(table_lines(stored))
    said = f"{count(len(stored), 'stored answer')}, {sum_costs(stored)}" if stored else "no stored answer"
    print_lines([f"{said} in {escape_line(store.place)}"])
    if corrupt:
        print_lines([f"{count(len(corrupt), 'corrupt file')}: see ctxfp cache verify"])
    return 0


def _show(arguments: argparse.Namespace) -> int:
    store = open_store(arguments.dir)
    found = [find_stored(store, key) for key in arguments.keys]
    if arguments.json:
        traces: list[JSONValue] = [json.loads(items[0].trace.to_json()) for items in found]
        print_json(traces if len(traces) > 1 else traces[0])
        return 0
    for number, items in enumerate(found):
        print_lines(([""] if number else []) + trace_lines(items[0]))
        if len(items) > 1:
            others = ", ".join(item.key[:_SHORT] for item in items[1:])
            print_lines([f"{'older':<13}{others}"])
    return 0


def find_stored(store: TraceStore, key: str) -> list[Stored]:
    """Return the stored answer of a key, or those of a case, the newest first; at least one.

    Raises:
        CtxfpError: there is none, several keys begin so, or the file is corrupt.
        OSError: the folder can't be listed.
    """
    if _HASH_PREFIX.fullmatch(key.lower()):
        names = _keys_that_begin(store, key.lower())
        if len(names) > 1:
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            message = f"{key!r} begins {len(names)} keys ({shown}): give more digits"
            raise CtxfpError(message)
        if names:
            return [_load(store, names[0])]
    stored, _ = read_store(store)
    found = [item for item in stored if item.trace.case_id == key]
    if not found:
        message = (
            f"no stored answer in {store.place} has the key or the case id {key!r}: ctxfp cache ls lists them"
        )
        raise CtxfpError(message)
    return found


def _keys_that_begin(store: TraceStore, prefix: str) -> list[str]:
    return [sha for sha in store.hashes() if sha.startswith(prefix)]


def _load(store: TraceStore, key: str) -> Stored:
    found = store.by_hash(key)
    if found.trace is None:
        raise CtxfpError(found.problem or store.outage or f"{key}: no stored answer")
    name = f"{key}.json"
    time = store.recorded_time(found.trace, name)
    return Stored(store.dir / name, store.place_of(name), found.trace, time)


def trace_lines(item: Stored) -> list[str]:
    """Return what a person wants to know of a stored answer.

    Example::

        key        3f9c1a2b4d5e6f708192a3b4c5d6e7f801234567
        case       total_orders
        question   How many orders?
        answer     {"columns": ["n"], "rows": [[99]]}
        recorded   2026-11-30 19:21:54 UTC by pytest-ctxfp 0.1.0, 0.0200 USD, 3 turns, 20000 ms
    """
    trace = item.trace
    pairs = [("key", item.key), ("case", trace.case_id), ("question", trace.question)]
    if trace.status == "ok":
        pairs.append(("answer", json.dumps(trace.result, ensure_ascii=False)))
    else:
        pairs.append(("answer", f"(unparseable) {trace.raw or ''}"))
    pairs += [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in trace.key_parts().items()
        if name not in ("case_id", "question") and value is not None
    ]
    if trace.sql_executed is not None:
        pairs.append(("sql", trace.sql_executed))
    pairs.append(("recorded", _recorded(trace)))
    pairs += [("layer", line) for line in _layer_lines(trace.context)]
    return [f"{name:<13}{escape_line(value, limit=_MAX_SHOWN)}" for name, value in pairs]


def _recorded(trace: Trace) -> str:
    when = shorten_time(trace.recorded_at) if trace.recorded_at else "at an unknown time"
    by = f" by {trace.recorded_by}" if trace.recorded_by else ""
    cost = known_cost(trace)
    parts = [f"{when}{by}", "an unknown cost" if cost is None else f"{cost:.4f} USD"]
    if trace.turns is not None:
        parts.append(count(trace.turns, "turn"))
    parts.append(f"{trace.latency_ms} ms")
    if trace.served_model:
        parts.append(f"served by {trace.served_model}")
    if trace.passed_then is not None:
        parts.append("passed then" if trace.passed_then else "failed then")
    return ", ".join(parts)


def _layer_lines(context: object) -> list[str]:
    """Return a line a layer; a fingerprint that another program wrote may have any form."""
    layers = context.get("layers") if isinstance(context, dict) else None
    if not isinstance(layers, dict):
        return []
    order = context.get("order") if isinstance(context, dict) else None
    if not isinstance(order, list) or not all(isinstance(name, str) for name in order):
        order = list(layers)
    return [_layer_line(name, layers[name]) for name in order if name in layers]


def _layer_line(name: str, layer: object) -> str:
    if not isinstance(layer, dict):
        return name
    return f"{name} ({layer.get('bytes', '?')} bytes, {layer.get('hash', '?')})"


def _verify(arguments: argparse.Namespace) -> int:
    store = open_store(arguments.dir)
    stored, corrupt = read_store(store)
    corrupt += [problem for item in stored if (problem := check_name(item)) is not None]
    if arguments.json:
        listed: list[JSONValue] = [
            {"file": item.place, "problem": escape_line(item.problem)} for item in corrupt
        ]
        print_json({"dir": store.place, "checked": _n_files(stored, corrupt), "corrupt": listed})
        return 1 if corrupt else 0
    print_lines(escape_line(item.problem) for item in sorted(corrupt, key=lambda item: item.path))
    n_files = _n_files(stored, corrupt)
    print_lines([f"{count(n_files, 'file')} in {escape_line(store.place)}, {len(corrupt)} corrupt"])
    if corrupt:
        print_lines(["a corrupt file is a miss: the next run with --ctx-cache asks again and replaces it"])
    return 1 if corrupt else 0


def _n_files(stored: Iterable[Stored], corrupt: Iterable[Corrupt]) -> int:
    return len({item.path for item in stored} | {item.path for item in corrupt})


def check_name(item: Stored) -> Corrupt | None:
    """Return what is wrong with the name of a stored answer's file, where that can be told.

    A file that lacks parts of its key (Warble's) can't be checked. Nor can one whose question or params are
    not those that were hashed: texts that were redacted, or a character that was two surrogates.
    """
    from pytest_ctxfp._key import CaseKey

    trace = item.trace
    if trace.absent_parts:
        return None
    parts = trace.key_parts()
    try:
        key = CaseKey(**parts)  # type: ignore[arg-type] # it checks their types itself
    except ValueError as error:
        return Corrupt(item.path, item.place, f"{item.place}: is the answer to no key: {error}")
    if key.hash() == item.key or _may_be_rewritten(parts):
        return None
    message = f"{item.place}: holds the answer to another key, {key.hash()}: it was renamed or edited"
    return Corrupt(item.path, item.place, message)


_REWRITTEN = re.compile(f"{re.escape(REDACTED)}|[\U00010000-\U0010ffff]")


def _may_be_rewritten(parts: dict[str, JSONValue]) -> bool:
    return _REWRITTEN.search(json.dumps(parts, ensure_ascii=False)) is not None
