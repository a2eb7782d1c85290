"""Calling an agent or assembler with just the arguments it names."""

from __future__ import annotations

import copy
import functools
import inspect
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, TypeVar

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._model import CaseView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def named_arguments(
    function: Callable[..., object], available: tuple[str, ...], *, role: str
) -> frozenset[str]:
    """Return which of the available arguments a callable names; one with ``**kwargs`` names them all.

    Args:
        function: a function, bound method, partial or callable object.
        available: the names that can be handed over.
        role: what the callable is, for the error: ``ctx_agent`` or ``ctx_assembler``.

    Raises:
        CtxfpError: it isn't callable, or needs an argument that is none of the available ones.
    """
    plain = _plain_names(function)
    if plain is not None and plain.issubset(available):
        return plain
    parameters = _parameters(function, role)
    for parameter in parameters:
        _check_parameter(parameter, available, role)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return frozenset(available)
    named = {parameter.name for parameter in parameters if parameter.kind in _BY_NAME}
    return frozenset(named.intersection(available))


def call_named(function: Callable[..., T], values: Mapping[str, object], names: frozenset[str]) -> T:
    """Call ``function`` with those of ``values`` that it names; what it could change in them is a copy."""
    return function(**{name: _copy_if_mutable(values[name]) for name in names})


def _copy_if_mutable(value: T) -> T:
    """Return a copy of what an agent or assembler could change; the original stays as it was keyed."""
    if isinstance(value, CaseView):
        return CaseView(
            id=value.id,
            question=value.question,
            inputs=copy.deepcopy(dict(value.inputs)),
            metadata=copy.deepcopy(dict(value.metadata)),
            result_kind=value.result_kind,
        )  # type: ignore[return-value]
    return copy.deepcopy(value) if isinstance(value, (dict, list)) and value else value


def source_file(function: object) -> Path | None:
    """Return the file that defines a function, or a callable object's class; None where there is none."""
    while isinstance(function, functools.partial):
        function = function.func
    if not (inspect.isfunction(function) or inspect.ismethod(function) or inspect.isclass(function)):
        function = type(function)
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except (OSError, TypeError):
        return None
    return None if file is None else Path(file)


def _plain_names(function: object) -> frozenset[str] | None:
    """Return the names that a bare function takes, if no more is to know; a signature is slow."""
    if type(function) is not FunctionType or function.__dict__:
        return None
    code = function.__code__
    if code.co_posonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    return frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _parameters(function: Callable[..., object], role: str) -> list[inspect.Parameter]:
    if not callable(function):
        message = f"{role} gave {type(function).__name__!r}, which is not callable: return a function from it"
        raise CtxfpError(message)
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        message = f"{role} gave a callable without a readable signature ({error}): wrap it in a function"
        raise CtxfpError(message) from None


def _check_parameter(parameter: inspect.Parameter, available: tuple[str, ...], role: str) -> None:
    if parameter.default is not inspect.Parameter.empty:
        return
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY or (
        parameter.kind in _BY_NAME and parameter.name not in available
    ):
        message = (
            f"{role} asks for an argument {parameter.name!r}; it is called by name with any of"
            f" {', '.join(available)} (what a case has under inputs comes as inputs): rename the argument, or"
            " give it a default"
        )
        raise CtxfpError(message)
