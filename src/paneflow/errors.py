"""What can go wrong, in words a user can act on.

Every error paneflow raises on purpose derives from `PaneflowError`. A message says what was
given, what was expected, and what to do.
"""

from __future__ import annotations


class PaneflowError(Exception):
    """The root of everything paneflow raises on purpose."""


class QueryError(PaneflowError, ValueError):
    """A window, an aggregate or a query is stated in a way that has no meaning."""


class InputError(PaneflowError, ValueError):
    """The data does not fit the query: a wrong column, a wrong type, a null time."""


class UnsupportedError(PaneflowError):
    """A meaningful request that this engine or algorithm must refuse, with the reason."""


class ManyRowsWarning(UserWarning):
    """A window is longer than all the data and slides by little: rows are many, and alike."""
