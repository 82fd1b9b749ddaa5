"""How paneflow's objects show themselves: in one line, and as small HTML for notebooks.

They show names: columns, labels, parameters. They never show a user's data, and they cut
long lists short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

IN_A_LINE = (4, 60)
IN_A_TABLE = (20, 300)
"""The most items of a list that are shown, and the most characters of each."""


class Call(NamedTuple):
    """The call that makes an object: the name of a function, and its arguments."""

    name: str
    arguments: tuple[object, ...] = ()
    options: Mapping[str, object] = {}

    def text(
        self, show: Callable[[object], str], show_option: Callable[[object], str] | None = None
    ) -> str:
        """The call as text, with each argument shown by `show`, and options by `show_option`.

        >>> Call("concat", ("word",), {"separator": " "}).text(str, repr)
        "concat(word, separator=' ')"
        """
        shown = [show(argument) for argument in self.arguments]
        shown += [f"{name}={(show_option or show)(value)}" for name, value in self.options.items()]
        return f"{self.name}({', '.join(shown)})"


class Word(str):
    """A text that stands for a name, and is shown without quotes.

    >>> Word("float64")
    float64
    """

    __repr__ = str.__str__


def bare(value: object) -> str:
    """A value without quotes, unless it would then look like two values.

    >>> bare("load"), bare(4), bare("done, partial=True")
    ('load', '4', "'done, partial=True'")
    """
    text = str(value)
    ambiguous = isinstance(value, str) and (", " in text or text[:1] in ("'", '"'))
    return repr(text) if ambiguous else text


def one_line(text: str, most: int = 60) -> str:
    r"""A text without line breaks, cut if it is long.

    >>> one_line("load\nin watts"), len(one_line("x" * 1000))
    ('load in watts', 60)
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def shortened(items: Iterable[object], most: tuple[int, int] = IN_A_LINE) -> list[str]:
    """Items as lines; if there are many, the first few and the number of the others.

    >>> shortened(["a", "b"]), shortened(range(100))
    (['a', 'b'], ['0', '1', '2', '3', '… 96 more'])
    """
    number, characters = most
    shown = [one_line(str(item), characters) for item in items]
    if len(shown) > number + 1:
        shown[number:] = [f"… {len(shown) - number} more"]
    return shown


def named_texts(items: Mapping[str, object]) -> list[str]:
    """Objects with their names; a name that is the object's own text is not repeated.

    >>> named_texts({"tumbling(5)": "tumbling(5)", "hour": "tumbling(1h)"})
    ['tumbling(5)', 'hour=tumbling(1h)']
    """
    return [str(item) if str(item) == name else f"{name}={item}" for name, item in items.items()]


def counted(**numbers: int) -> str:
    """Numbers of things, in words.

    >>> counted(operator=1, reason=3)
    '1 operator, 3 reasons'
    """
    return ", ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in numbers.items())


def code_html(text: str) -> str:
    """A text as code in HTML.

    >>> code_html("delta(a<b, 1, 2)")
    '<code>delta(a&lt;b, 1, 2)</code>'
    """
    return f"<code>{_escaped(text)}</code>"


def table_html(title: str, rows: Mapping[str, Iterable[object]]) -> str:
    """An HTML table with a title: a row for each name, with one item to a line.

    >>> table_html("Plan", {"engine": ["table"]})
    '<table><caption>Plan</caption><tr><th>engine</th><td>table</td></tr></table>'
    """
    body = ""
    for name, items in rows.items():
        lines = "<br>".join(_escaped(item) for item in shortened(items, IN_A_TABLE))
        body += f"<tr><th>{_escaped(name)}</th><td>{lines}</td></tr>"
    return f"<table><caption>{_escaped(title)}</caption>{body}</table>"


def _escaped(text: str) -> str:
    from html import escape  # imported when needed: most programs never show HTML

    return escape(text)
