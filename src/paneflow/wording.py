"""The words of queries: windows and aggregates as text, and back.

Windows and aggregates are written as the calls that make them. A text is parsed, never evaluated:
it may call the constructors of `paneflow.windows` and `paneflow.aggregates`, with literal
arguments, and nothing else. So a query may come from a file or over a network.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from paneflow import aggregates as A, windows as W
from paneflow._display import one_line
from paneflow.errors import QueryError
from paneflow.suggesting import suggestion

if TYPE_CHECKING:
    from paneflow.query import Query

WINDOWS: dict[str, Callable[..., Any]] = {
    make.__name__: make
    for make in (
        *(W.count, W.delta, W.punctuation, W.session),
        *(W.slide_by_time, W.slide_by_tuple, W.sliding, W.tumbling),
    )
}
AGGREGATES: dict[str, Callable[..., Any]] = {
    make.__name__: make
    for make in (
        *(A.approx_distinct, A.approx_quantile, A.arg_max, A.arg_min, A.bloom_filter),
        *(A.collect, A.concat, A.count, A.distinct, A.first, A.geometric_mean, A.last),
        *(A.linear_regression, A.max, A.mean, A.median, A.min, A.mode, A.moment_sketch),
        *(A.product, A.quantile, A.quantiles, A.std, A.std_pop, A.sum, A.top_k, A.var, A.var_pop),
    )
}
KEYS = ("windows", "aggregates", "key", "time", "lateness")

_LONGEST = 10_000
_IN_PYTHON = (
    'make the query in Python and name it where it is used, as in query = "my_module:my_query"'
)


def arguments_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the query that a mapping describes."""
    if not isinstance(given, Mapping):
        raise QueryError(f"a query was given as {given!r}: give a mapping with {', '.join(KEYS)}")
    for key in given:
        if key not in KEYS:
            raise QueryError(f"a query has no {key!r}: {suggestion(str(key), KEYS)}")
    for key in ("windows", "aggregates"):
        if key not in given:
            raise QueryError(f"the query has no {key!r}: give at least one")
    windows, found = given["windows"], given["aggregates"]
    if not isinstance(found, Mapping):
        raise QueryError(
            f"aggregates were given as {found!r}: give a name for each, for example "
            f'{{"peak": "max(\'load\')"}}'
        )
    made: Any
    if isinstance(windows, Mapping):
        made = {label: _window(text, f"window {label!r}") for label, text in windows.items()}
    elif isinstance(windows, list | tuple):
        made = [_window(text, f"window {at}") for at, text in enumerate(windows, 1)]
    else:
        made = _window(windows, "the window")
    aggregates = {name: _aggregate(text, f"aggregate {name!r}") for name, text in found.items()}
    others = {name: given[name] for name in given if name not in ("windows", "aggregates")}
    return {"windows": made, "aggregates": aggregates, **others}


def write_query(query: Query) -> dict[str, Any]:
    """A query as a mapping of plain values, which `read_query` reads.

    >>> import paneflow as pf
    >>> write_query(pf.Query(W.tumbling("5 s"), {"n": A.count()}, key="house"))
    {'windows': {'tumbling(5s)': "tumbling('5s')"}, 'aggregates': {'n': 'count()'}, \
'key': ['house'], 'time': 'ts'}
    """
    written: dict[str, Any] = {
        "windows": {
            label: _written(window, f"window {label!r}", _window)
            for label, window in query.windows.items()
        },
        "aggregates": {
            name: _written(aggregate, f"aggregate {name!r}", _aggregate)
            for name, aggregate in query.aggregates.items()
        },
    }
    if query.key:
        written["key"] = list(query.key)
    written["time"] = query.time
    if query.lateness.value:
        lateness = query.lateness
        written["lateness"] = str(lateness) if lateness.textual else lateness.value
    return written


def _window(text: object, what: str) -> Any:
    return _made(text, what, WINDOWS, ("window", "tumbling('1 minute')"))


def _aggregate(text: object, what: str) -> Any:
    return _made(text, what, AGGREGATES, ("aggregate", "max('load')"))


def _written(thing: object, what: str, read: Callable[[object, str], Any]) -> str:
    """The call that makes a window or an aggregate; a user's own may look like a built-in one."""
    text = repr(thing)
    try:
        again = read(text, what)
    except QueryError:
        again = None
    if type(again) is type(thing) and repr(again) == text:
        return text
    raise QueryError(f"{what} is {text}, which cannot be written as text: {_IN_PYTHON}")


def _made(
    text: object, what: str, makers: Mapping[str, Callable[..., Any]], kind: tuple[str, str]
) -> Any:
    noun, example = kind
    if not isinstance(text, str):
        raise QueryError(f'{what} was given as {text!r}: give text, for example "{example}"')
    said = f'{what} is "{one_line(text, 200)}"'
    call = _parsed(text, said, example)
    name = _name(call, said)
    if name not in makers:
        if name in ("define", "apply"):
            raise QueryError(f"{said}, which needs a function of yours: {_IN_PYTHON}")
        other = WINDOWS if makers is AGGREGATES else AGGREGATES
        if name in other:
            raise QueryError(
                f"{said}, but {name} makes {'a window' if other is WINDOWS else 'an aggregate'}: "
                f"write it under {'windows' if other is WINDOWS else 'aggregates'}"
            )
        own = f"; for one of your own, {_IN_PYTHON}" if name[:1].isupper() else ""
        raise QueryError(
            f"{said}, and there is no {noun} {name!r}: {suggestion(name, makers)}{own}"
        )
    arguments = [_literal(node, said) for node in call.args]
    options = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise QueryError(f"{said}: write every option by its name, not as **options")
        options[keyword.arg] = _literal(keyword.value, said)
    signature = inspect.signature(makers[name])
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        shown = ", ".join(
            p.name if p.default is p.empty else f"{p.name}={p.default!r}"
            for p in signature.parameters.values()
        )
        raise QueryError(f"{said}: {error}; it is called as {name}({shown})") from None
    try:
        return makers[name](*arguments, **options)
    except QueryError as error:
        raise QueryError(f"{said}: {error}") from error


def _parsed(text: str, said: str, example: str) -> ast.Call:
    if len(text) > _LONGEST:
        raise QueryError(f"{said}, {len(text)} characters long: give at most {_LONGEST}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an escape that means nothing, such as \d
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError, Warning) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise QueryError(
            f'{said}, which cannot be read ({reason}): write for example "{example}"'
        ) from None
    if not isinstance(tree, ast.Call):
        raise QueryError(f'{said}, which is not a call: write for example "{example}"')
    return tree


def _name(call: ast.Call, said: str) -> str:
    if isinstance(call.func, ast.Attribute):
        raise QueryError(f"{said}: write {call.func.attr}(...), without what is before the dot")
    if not isinstance(call.func, ast.Name):
        raise QueryError(f"{said}, which does not begin with the name of a function: write one")
    return call.func.id


def _literal(node: ast.expr, said: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        quotes = f", as in '{node.id}'" if isinstance(node, ast.Name) else ""
        raise QueryError(
            f"{said}, but {_shown(node)} is not a value: give text in quotes{quotes}, a number, or "
            f"a list of these"
        ) from None


def _shown(node: ast.expr) -> str:
    try:
        return one_line(ast.unparse(node))
    except RecursionError:
        return "an argument"
