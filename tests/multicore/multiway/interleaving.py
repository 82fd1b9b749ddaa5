"""Every way in which the steps of a few threads can follow each other, explored one by one.

The text of compiled functions is executed as plain Python, changed in one respect: before it reads
or writes anything that threads share, through `observe`, `publish`, `exchange` or `add`, a function
yields, so that another thread may go on. Arrays become lists, so that numbers are Python's.

Schedules are explored depth first. A state that was reached before is not explored again: what
threads share, where each of them stands, and what it knows. Threads cannot be copied, so going
back means to begin again and repeat a schedule.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from paneflow.merging.machine import atomics
from tests.multicore.multiway.linearizability import Event

SHARED = ("observe", "publish", "exchange", "add")
Steps = Generator[None, None, Any]


class _Yielding(ast.NodeTransformer):
    """Calls of functions that have steps become `yield from`."""

    def __init__(self, stepping: set[str]) -> None:
        self._stepping = stepping

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._stepping:
            return ast.YieldFrom(node)
        return node


def texts_of(
    modules: Sequence[ModuleType], broken: tuple[str, str] = ("", "")
) -> tuple[dict[str, Any], dict[str, ast.FunctionDef]]:
    """All names of some modules, and the texts of their compiled functions.

    `broken` is a piece of these texts, and what takes its place.
    """
    names: dict[str, Any] = {}
    texts: dict[str, ast.FunctionDef] = {}
    found = False
    for module in modules:
        names |= vars(module)
    for name, value in names.items():
        function = getattr(value, "py_func", None)
        if isinstance(function, FunctionType) and function.__module__.startswith(
            "paneflow.engines"
        ):
            text = textwrap.dedent(inspect.getsource(function))
            found |= broken[0] in text
            tree = ast.parse(text.replace(*broken) if broken[0] else text).body[0]
            assert isinstance(tree, ast.FunctionDef)
            tree.decorator_list = []
            texts[name] = tree
    assert found, f"no function has {broken[0]!r} in it"
    return names, texts


def in_steps(
    modules: Sequence[ModuleType], broken: tuple[str, str] = ("", ""), **changed: Any
) -> dict[str, Callable[..., Any]]:
    """The functions of some modules, as generators if they touch what threads share.

    `changed` are names that stand for something else.
    """
    names, texts = texts_of(modules, broken)
    stepping = set(SHARED)
    while more := {n for n, tree in texts.items() if _calls(tree) & stepping} - stepping:
        stepping |= more
    for tree in texts.values():
        steps = ast.fix_missing_locations(_Yielding(stepping).visit(tree))
        exec(compile(ast.Module([steps], []), f"<{steps.name} in steps>", "exec"), names)
    names |= {name: _step(getattr(atomics, name)) for name in SHARED} | changed
    return names


def _calls(tree: ast.AST) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def _step(operation: Callable[..., Any]) -> Callable[..., Steps]:
    def step(*arguments: Any) -> Steps:
        yield
        return operation(*arguments)

    return step


def at_once(steps: Steps) -> Any:
    """Do all steps, without letting another thread in between."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


class Thread:
    """A thread that has begun: operations one after another, and what they have returned."""

    def __init__(self, operations: Iterable[tuple[Any, Callable[[], Steps]]]) -> None:
        self._operations = iter(operations)
        self._running: Steps | None = None
        self._operation: Any = None
        self._after: tuple[int, ...] = ()
        self.done: list[Event] = []
        self.over = False

    def go_on(self, threads: list[Thread]) -> None:
        """Go on to just before the next access to what is shared, or to the end."""
        if self._running is None:
            following = next(self._operations, None)
            if following is None:
                self.over = True
                return
            self._operation, begin = following
            self._after = tuple(len(thread.done) for thread in threads)
            self._running = begin()
        try:
            next(self._running)
        except StopIteration as end:
            self.done.append(Event(self._operation, end.value, self._after))
            self._running = None

    def standing(self) -> tuple[Any, ...]:
        """Where it stands, and what it knows."""
        frames: list[Any] = []
        steps: Any = self._running
        while steps is not None and steps.gi_frame is not None:
            frame = steps.gi_frame
            known = tuple(
                v if isinstance(v, int) else tuple(v.tolist())
                for v in frame.f_locals.values()
                if isinstance(v, int | np.ndarray)  # shared arrays are lists here
            )
            frames.append((frame.f_code.co_name, frame.f_lasti, known))
            steps = steps.gi_yieldfrom
        return tuple(frames), self._after, tuple((e.result, e.after) for e in self.done), self.over


class Case:
    """What threads share, and the threads, before anything has happened."""

    def __init__(self, shared: Sequence[list[int]], threads: list[Thread]) -> None:
        self.shared = shared
        self.threads = threads

    def state(self) -> int:
        memory = tuple(tuple(cells) for cells in self.shared)
        return hash((memory, tuple(thread.standing() for thread in self.threads)))


Around = TypeVar("Around")


def outcomes(make: Callable[[], tuple[Case, Around]]) -> Iterator[tuple[Case, Around]]:
    """All ways in which a case can end, but not those that differ in nothing that matters.

    `make` makes the case anew, with whatever the caller wants to have of its end.
    """
    known: set[int] = set()
    schedules: list[list[int]] = [[]]
    while schedules:
        schedule = schedules.pop()
        case, around = make()
        for k in schedule:
            case.threads[k].go_on(case.threads)
        while True:
            state = case.state()
            if state in known:
                break
            known.add(state)
            able = [k for k, thread in enumerate(case.threads) if not thread.over]
            if not able:
                yield case, around
                break
            schedules += [[*schedule, k] for k in able[1:]]
            schedule.append(able[0])
            case.threads[able[0]].go_on(case.threads)
