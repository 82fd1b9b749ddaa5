"""What may enter a stream: each batch is checked as a whole before any of it is accepted.

The first batch sets the types of the columns; later ones must have the same types, or types that
convert to them without loss. Events without a time, and those too far ahead of the clock if there
is a limit, are left out and counted. A bad value refuses the whole batch.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates._numerics.decimals import digits
from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import kind_of, plain_type, sortable_type
from paneflow.engines.live.stream_options import FINAL, StreamOptions
from paneflow.engines.multicore import wall_clock
from paneflow.engines.multicore.intake.as_pushed import Pushed, chosen
from paneflow.engines.multicore.threads.interrupts import put_off
from paneflow.engines.multicore.threads.short_loops import Loop
from paneflow.errors import InputError
from paneflow.slicing.columns import numbers_of, one_chunk
from paneflow.slicing.times import FARTHEST, read_times, time_type
from paneflow.tables import EVERY_COLUMN, to_arrow
from paneflow.windows import Delta

if TYPE_CHECKING:
    from paneflow.query import Query


class Admitted(NamedTuple):
    """What was accepted of a batch."""

    batch: pa.RecordBatch | None
    places: list[int] | None
    """The positions of the query's columns in the batch; None if it has no other columns.

    Arrow releases the interpreter lock to select columns, and a push would wait to get it back, so
    columns are selected later."""
    timeless: int
    """How many events had no time and were left out."""
    latest: int = 0
    """The largest time."""
    ahead: int = 0
    """How many events were too far ahead of the clock and were left out."""
    whole: Pushed | None = None
    """The events with all their columns as they were pushed, if late events are returned."""
    times: Array | None = None
    """All times in ticks, if they are known never to decrease."""


class Admission:
    """Turns batches of any kind into record batches with the query's columns."""

    def __init__(self, query: Query, options: StreamOptions) -> None:
        self._query = query
        self._max_ahead = options.max_ahead
        self._returns_late = options.late
        self._updates = options.updates
        self.schema: pa.Schema | None = None
        """The query's columns, with the types of the first batch; the time comes first.

        Views of text are held as plain text, which Arrow can sort."""
        self._rows: pa.Schema | None = None
        """The columns of rows, if views are among them."""
        self._layouts: dict[int, tuple[pa.Schema, list[int] | None]] = {}
        """For each source the schema of its last batch, and the positions of the query's columns.

        None in place of positions: it has the query's columns and no others."""
        self._learning = threading.Lock()
        self._in_ticks = False
        """Whether times arrive in the type in which they are kept."""
        self._met: set[int] = set()
        """The memory layouts of times so far: each has a compiled kernel."""
        self._growing: list[int] = []
        self._wide: list[int] = []

    def admit(self, batch: Any, source: int) -> Admitted:
        """Check a batch, and leave out events without a usable time."""
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            read = EVERY_COLUMN if self._returns_late else self._query.columns
            batch = to_arrow(batch, read)[0]
        if batch.num_rows == 0:  # its types may be anything
            return Admitted(None, None, 0)
        given, places = self._layouts.get(source, (None, None))
        if given is None or not batch.schema.equals(given):
            with put_off, self._learning:
                return self._unusual(batch, source)
        if isinstance(batch, pa.Table):
            columns = range(batch.num_columns) if places is None else places
            arrays = [one_chunk(batch.column(place)) for place in columns]
            read = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            return self._checked(read, None, batch)
        return self._checked(batch, places, batch)

    def _unusual(self, batch: Any, source: int) -> Admitted:
        """Check a batch whose schema is not the one its source had last."""
        given = batch.schema
        self._query.check(given)
        self._check_clock(given.field(self._query.time).type)
        names = self._query.columns
        types = {name: given.field(name).type for name in names}
        # A key of nothing but nulls is a key; a value column of nothing but nulls holds floats.
        types |= {
            n: plain_type(t)
            for n, t in types.items()
            if not pa.types.is_null(t) or n not in self._query.key
        }
        plain = pa.schema([(name, sortable_type(type_)) for name, type_ in types.items()])
        known = self.schema
        if known is None:
            rows = self._query.result_schema(pa.schema(types))
            self._rows = None if rows.equals(self._query.result_schema(plain)) else rows
            if self._rows is not None and self._updates:
                self._rows = self._rows.append(pa.field(FINAL, pa.bool_()))
        wanted = plain if known is None else known
        arrays = [
            _cast(batch.column(name), plain.field(name).type, wanted.field(name).type, name)
            for name in names
        ]
        self._note(wanted)
        admitted = self._checked(pa.RecordBatch.from_arrays(arrays, schema=wanted), None, batch)
        self.schema = wanted
        places = [given.get_field_index(name) for name in names]
        # To Arrow, a column that cannot be null has another type than one that can.
        if pa.schema([given.field(place) for place in places]).equals(wanted):
            self._layouts[source] = (given, None if given.names == wanted.names else places)
        return admitted

    def as_given(self, rows: pa.Table) -> pa.Table:
        """Rows in the types in which their columns were pushed."""
        return rows if self._rows is None else rows.cast(self._rows)

    def _note(self, schema: pa.Schema) -> None:
        """Note which columns need their values checked, and whether times need a cast."""
        names = self._query.columns
        growing = {w.column for w in self._query.windows.values() if isinstance(w, Delta)}
        read = {c for a in self._query.aggregates.values() for c in a.columns}
        time = schema.field(self._query.time).type
        self._in_ticks = time == time_type(time, self._query.time).type
        self._growing = [k for k, name in enumerate(names) if name in growing]
        self._wide = [
            k
            for k, name in enumerate(names)
            if name in read | growing and _may_be_too_wide(schema.field(name).type)
        ]

    def _checked(self, batch: pa.RecordBatch, places: list[int] | None, whole: Pushed) -> Admitted:
        """Check the columns that are read; `whole` is the batch as it was pushed."""
        place = 0 if places is None else places[0]
        times = batch.column(place)
        timeless = times.null_count
        if timeless:
            batch, whole = self._some(batch, places, whole, times.is_valid())
            places, times = None, batch.column(0)
        latest, in_order = self._look_at(times)
        ahead = 0
        if self._max_ahead is not None and len(times):
            limit = wall_clock.clock.today() + self._max_ahead
            if latest > limit:
                in_reach = pc.less_equal(self._ticks(times), limit)
                ahead = len(times) - pc.sum(in_reach).as_py()
                batch, whole = self._some(batch, places, whole, in_reach)
                places, times = None, batch.column(0)
                latest, in_order = self._look_at(times)
        for k in self._growing:
            column = batch.column(k if places is None else places[k])
            _check_growing(column, self._query.columns[k])
        for k in self._wide:
            column = batch.column(k if places is None else places[k])
            _check_wide(column, self._query.columns[k])
        kept = whole if self._returns_late else None
        return Admitted(batch, places, timeless, latest, ahead, kept, in_order)

    def _some(
        self, batch: pa.RecordBatch, places: list[int] | None, whole: Pushed, which: pa.Array
    ) -> tuple[pa.RecordBatch, Pushed]:
        """The query's columns of some events, and these events with all their columns."""
        kept = chosen(whole, which.to_numpy(False)) if self._returns_late else whole
        return (batch if places is None else batch.select(places)).filter(which), kept

    def _check_clock(self, time: pa.DataType) -> None:
        if self._max_ahead is not None and not time_type(time, self._query.time).stamped:
            raise InputError(
                f"max_ahead compares times with the clock, but the time column "
                f"{self._query.time!r} has type {time}, whose unit only you know: cast it to a "
                f"timestamp, or leave max_ahead out"
            )

    def _ticks(self, times: pa.Array) -> pa.Array:
        """Timestamps in microseconds."""
        return times.cast(time_type(times.type, self._query.time).type).cast(pa.int64())

    def _look_at(self, times: pa.Array) -> tuple[int, Array | None]:
        """The largest time, and all of them if they are known never to decrease.

        It is an error if a time is too far from zero.
        """
        if len(times) == 0:
            return 0, None
        if self._in_ticks:
            ticks = numbers_of(times)
            layout = ticks.flags.num
            if layout in self._met:
                least, latest, ordered = _span(len(ticks), ticks)
            else:
                with put_off:  # a kernel may be compiled
                    least, latest, ordered = _span(len(ticks), ticks)
                    self._met.add(layout)
            if least >= -FARTHEST and latest <= FARTHEST:
                return latest, ticks if ordered else None
        with put_off:
            values, _ = read_times(pa.table({self._query.time: times}), self._query.time)
        return int(values.max()), None


def _cast(
    column: pa.ChunkedArray | pa.Array, given: pa.DataType, wanted: pa.DataType, name: str
) -> pa.Array:
    array = one_chunk(column) if isinstance(column, pa.ChunkedArray) else column
    if array.type == wanted:
        return array
    if array.null_count < len(array) and given != wanted:
        kinds = kind_of(given, name), kind_of(wanted, name)
        alike = kinds[0].family is kinds[1].family
        if not alike and not all(kind.numeric for kind in kinds):
            raise _other_type(name, given, wanted)
    try:
        return array.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _other_type(name, given, wanted) from None


def _other_type(name: str, given: pa.DataType, wanted: pa.DataType) -> InputError:
    return InputError(
        f"column {name!r} had type {wanted} when the stream began, and now has {given}, which "
        f"cannot become {wanted} without loss: cast it before it is pushed"
    )


def _check_growing(column: pa.Array, name: str) -> None:
    """Refuse what a delta window can make nothing of."""
    missing = column.null_count
    if pa.types.is_floating(column.type):
        missing += pc.sum(pc.is_nan(column)).as_py() or 0
    if missing:
        raise InputError(
            f"column {name!r} of a delta window is null or NaN in {missing} of {len(column)} "
            f"events: a delta window needs a value in every event; drop those or fill them in"
        )


def _may_be_too_wide(type_: pa.DataType) -> bool:
    """Whether a value may have more digits than int64."""
    return bool(type_ == pa.uint64() or pa.types.is_decimal(type_))


def _check_wide(column: pa.Array, name: str) -> None:
    if pa.types.is_decimal(column.type):
        digits(column, name)
        return
    try:
        column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise InputError(
            f"column {name!r} of type {column.type} holds values that do not fit into int64: "
            f"cast it to float64 first"
        ) from None


@Loop
def _span(times):  # type: ignore[no-untyped-def]
    """The least and the largest time, and whether times never decrease."""
    falls = 0
    for i in range(1, len(times)):
        falls += times[i] < times[i - 1]  # without a branch, so that it is vectorised
    if falls == 0:
        return times[0], times[-1], True
    least = latest = times[0]
    for t in times:
        least = min(least, t)
        latest = max(latest, t)
    return least, latest, False
