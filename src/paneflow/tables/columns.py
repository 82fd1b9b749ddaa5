"""One column of Python values or of pandas as an Arrow array, or a clear refusal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from paneflow.errors import InputError


def column_of(values: Any, name: str) -> pa.Array:
    """One column of values, or an error that says which column does not fit, and why."""
    try:
        return pa.array(values, from_pandas=not isinstance(values, list))
    except OverflowError:
        raise InputError(
            f"column {name!r} holds integers that do not fit into int64: make them floats or text"
        ) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(
            f"column {name!r} has values of several types ({error}): make it one type"
        ) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"column {name!r} has values that Arrow cannot hold ({error}): make them numbers, "
            f"times or text"
        ) from None
