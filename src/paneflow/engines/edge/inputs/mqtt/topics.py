"""Topics of MQTT as patterns in which levels have names: `home/{house}/{plug}/load`."""

from __future__ import annotations

import re

from paneflow.errors import InputError

_NAMED = re.compile(r"\{([^{}]+)\}")


class Topics:
    """The topics that an input subscribes to, and what their levels say about events."""

    def __init__(self, pattern: str) -> None:
        levels = pattern.split("/")
        self.columns = {
            found[1]: place
            for place, level in enumerate(levels)
            if (found := _NAMED.fullmatch(level))
        }
        """Which level of a topic is the value of which column."""
        rest = [level for level in levels if not _NAMED.fullmatch(level)]
        if (
            not pattern
            or any(set(level) & set("{}+#") and level not in ("+", "#") for level in rest)
            or "#" in levels[:-1]
            or len(self.columns) + len(rest) != len(levels)
        ):
            raise InputError(
                f"{pattern!r} is not a pattern of topics: expected levels between '/', each a "
                f"text, '+' for any text, or a column in braces, each column once, such as "
                f"'home/{{house}}/{{plug}}/load'; '#' stands for all levels at the end"
            )
        self.filter = "/".join("+" if _NAMED.fullmatch(level) else level for level in levels)
        """What the broker is asked for."""

    def read(self, topic: str) -> dict[str, str]:
        """The values in a topic that the filter lets through.

        >>> Topics("home/{house}/{plug}/load").read("home/4/7/load")
        {'house': '4', 'plug': '7'}
        """
        levels = topic.split("/")
        return {name: levels[place] for name, place in self.columns.items()}
