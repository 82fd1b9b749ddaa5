"""Windows that end at marked events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paneflow._display import Call
from paneflow.windows._checks import column_name, flag
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class Punctuation(Window):
    """A window holds the events after one mark, up to and including the next.

    A mark is an event whose boolean column is true.

    Attributes:
        column: The boolean column.
        partial: Whether the events after the last mark of a finite input are emitted, too.

    Example:
        >>> from paneflow import windows as W
        >>> W.punctuation("lap_done").columns
        ('lap_done',)
    """

    window_class: ClassVar[WindowClass] = WindowClass.FCF

    column: str
    partial: bool

    def __post_init__(self) -> None:
        column_name(self.column, "punctuation")
        flag(self.partial, "partial")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """The times of the first and the last event in the window."""
        return first_t, last_t

    def _call(self) -> Call:
        options = {"partial": True} if self.partial else {}
        return Call("punctuation", (self.column,), options)


def punctuation(column: str, partial: bool = False) -> Punctuation:
    """Windows that end with every marked event of a key.

    Args:
        column: A boolean column: an event in which it is true ends its window.
        partial: Also emit the events after the last mark of a finite input.

    Returns:
        The window.

    Example:
        >>> from paneflow import windows as W
        >>> W.punctuation("lap_done")
        punctuation('lap_done')
    """
    return Punctuation(column=column_name(column, "punctuation"), partial=partial)
