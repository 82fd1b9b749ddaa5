"""What can go wrong, in words that a user can act on.

Every error that paneflow raises on purpose derives from `PaneflowError`. A message says what was
given, what was expected, and what to do.
"""

from __future__ import annotations


class PaneflowError(Exception):
    """The base class of all errors that paneflow raises on purpose."""


class QueryError(PaneflowError, ValueError):
    """A window, an aggregate or a query has no meaning as it was given."""


class InputError(PaneflowError, ValueError):
    """The data does not fit the query: a wrong column, a wrong type, a null time."""


class UnsupportedError(PaneflowError):
    """A meaningful request that this engine or algorithm cannot serve; the message says why."""


class ManyRowsWarning(UserWarning):
    """A window is longer than all the data and slides in small steps: many rows, mostly alike."""
