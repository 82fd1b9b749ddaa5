"""The breaks: mistakes that a careless colleague might make, spread over all rooms."""

from __future__ import annotations

from dataclasses import dataclass

ROOMS = {
    "": "tests/test_semantics_vectors.py tests/properties",
    "windows": "tests/windows tests/test_semantics_vectors.py tests/test_many_rows.py",
    "aggregates": "tests/aggregates tests/properties tests/test_semantics_vectors.py",
    "tables": "tests/test_tables.py tests/test_dtypes_come_back.py tests/test_arrow_streams.py",
    "slicing": "tests/test_order.py tests/test_few_events.py tests/test_damaged_slices.py "
    "tests/test_many_rows.py tests/bad_input tests/properties tests/windows",
    "merging": "tests/merging tests/test_plan.py",
    "planning": "tests/test_plan.py tests/merging/test_stream_choice.py",
    "compiling": "tests/test_cache.py tests/aggregates/test_function_identity.py",
    "engines/oracle": "tests/test_semantics_vectors.py tests/properties tests/aggregates",
    "engines/table": "tests/test_order.py tests/test_many_rows.py tests/properties",
    "engines/live": "tests/properties tests/multicore tests/spark",
    "engines/multicore": "tests/multicore",
    "engines/spark": "tests/spark",
    "engines/edge": "tests/edge",
}
"""The tests of each room, for breaks that their own tests do not notice."""

# Each goes on with what to choose, and a quotation mark.
EACH_PAIR = "tests/properties/test_every_pair.py -k 'in_every_kind"
EACH_WINDOW = "tests/multicore/test_stream_properties.py -k 'every_kind and auto"
EACH_STRATEGY = "tests/multicore/test_every_pair.py -k 'test_every_aggregate"


@dataclass(frozen=True)
class Break:
    """Text that occurs once in a file, what it is replaced by, and the tests to run first."""

    name: str
    file: str
    old: str
    new: str
    tests: str

    def applied(self, whole: str) -> str:
        """The text of the file with the break in it."""
        if whole.count(self.old) != 1:
            found = whole.count(self.old)
            raise ValueError(f"{self.name}: {self.old!r} occurs {found} times in {self.file}")
        return whole.replace(self.old, self.new)


def _breaks(room: str, *given: tuple[str, str, str, str, str]) -> list[Break]:
    """Breaks in one room: name, file, old and new text, tests."""
    return [
        Break(name, f"src/paneflow/{room}{file}", old, new, tests)
        for name, file, old, new, tests in given
    ]


WINDOWS = _breaks(
    "windows/",
    (
        "sliding: a window ends one slide after its start",
        "sliding.py",
        "return start, start + self.range.value",
        "return start, start + self.slide.value",
        "tests/windows/test_bounds.py",
    ),
    (
        "sliding: an event joins one window too early",
        "sliding.py",
        "range((since - self.range.value) // slide + 1,",
        "range((since - self.range.value) // slide,",
        "tests/windows/test_bounds.py",
    ),
    (
        "sliding: the ends of slices forget the offset",
        "sliding.py",
        "((self.offset.value + self.range.value) % slide, slide)",
        "(self.range.value % slide, slide)",
        "tests/windows/test_bounds.py",
    ),
    (
        "session: ends at its last event",
        "session.py",
        "return first_t, last_t + self.gap.value",
        "return first_t, last_t",
        "tests/windows/test_bounds.py",
    ),
    (
        "slide_by_time: the boundary is a slide early",
        "slide_by_time.py",
        "(self.offset.value + self.slide.value)",
        "self.offset.value",
        "tests/windows/test_bounds.py",
    ),
    (
        "duration: a minus is lost",
        "duration.py",
        "return sign * int(total)",
        "return int(total)",
        "tests/windows/test_duration.py",
    ),
    (
        "sliding: overlap off by one where the slide does not divide the range",
        "sliding.py",
        "return -(-self.range.value // self.slide.value)",
        "return self.range.value // self.slide.value",
        "tests/windows/test_bounds.py -k overlap",
    ),
    (
        "custom: a mark out of range is taken",
        "custom.py",
        "<= mark.__index__() <= 7",
        "<= mark.__index__() <= 8",
        "tests/windows/test_custom_steps.py",
    ),
)

SLICING = _breaks(
    "slicing/",
    (
        "sliding bounds: one window beyond the watermark",
        "bounds/by_time.py",
        "bounds[:, 4] = (until - offset - reach) // slide",
        "bounds[:, 4] = (until - offset - reach) // slide + 1",
        "tests/properties/test_open_windows.py",
    ),
    (
        "session bounds: events exactly a gap apart are parted",
        "bounds/by_time.py",
        "t[i] - latest <= gap",
        "t[i] - latest < gap",
        f"{EACH_PAIR} and session'",
    ),
    (
        "session bounds: a short slice hides a long one",
        "bounds/by_time.py",
        "latest = max(latest, last[i])",
        "latest = last[i]",
        "tests/properties/test_slices.py -k split",
    ),
    (
        "session bounds of few events: keys run into one another",
        "bounds/few_events.py",
        "begins[offsets[:-1][np.diff(offsets) > 0]] = True",
        "begins[0] = True",
        "tests/test_few_events.py",
    ),
    (
        "slide_by_time bounds: an event at the boundary is in",
        "bounds/by_time.py",
        "and t[i] < boundary",
        "and t[i] <= boundary",
        f"{EACH_PAIR} and slide_by_time'",
    ),
    (
        "slide_by_tuple bounds: the back edge is in",
        "bounds/by_event.py",
        "while t[a] <= t[at] - reach",
        "while t[a] < t[at] - reach",
        f"{EACH_PAIR} and slide_by_tuple'",
    ),
    (
        "delta bounds: a step of exactly the slide triggers",
        "bounds/by_growth.py",
        "d[i] - trigger > slide",
        "d[i] - trigger >= slide",
        f"{EACH_PAIR} and delta'",
    ),
    (
        "counting: neighbouring windows are counted twice",
        "bounds/by_time.py",
        "                counted = last + 1",
        "                counted = last",
        "tests/test_many_rows.py",
    ),
    (
        "ordering: the least significant field sorts first",
        "ordering.py",
        "for field in reversed(fields):",
        "for field in fields:",
        "tests/test_few_events.py tests/test_order.py",
    ),
    (
        "keys: nulls come last",
        "keys.py",
        "order = np.roll(pc.sort_indices(encoded.dictionary).to_numpy(), "
        "encoded.dictionary.null_count)",
        "order = pc.sort_indices(encoded.dictionary).to_numpy()",
        "tests/test_order.py",
    ),
    (
        "keys: two keys of several columns share a code",
        "keys.py",
        "_dense(codes * width + more, ",
        "_dense(codes * (width - 1) + more, ",
        "tests/test_order.py",
    ),
    (
        "slices: the other part comes first",
        "slices.py",
        "[self.table, _like(other.table, self.table.schema)]",
        "[_like(other.table, self.table.schema), self.table]",
        "tests/properties/test_slices.py",
    ),
    (
        "checking: counts larger than their slice pass",
        "checking.py",
        "((counts >= 0) & (counts <= rows)).all()",
        "(counts >= 0).all()",
        "tests/test_damaged_slices.py",
    ),
    (
        "presence: a null is counted",
        "events.py",
        "np.cumsum(counted, out=self._before[1:])",
        "np.cumsum(np.ones_like(counted), out=self._before[1:])",
        f"{EACH_PAIR} and (tumbling or sliding)'",
    ),
)

MERGING = _breaks(
    "merging/",
    (
        "two_stacks_lite: the back before the front",
        "two_stacks.py",
        'return combine({shape.load("a", "i")}, {shape.load("b", "0")})',
        'return combine({shape.load("b", "0")}, {shape.load("a", "i")})',
        "tests/merging/test_fifo_windows.py -k two_stacks",
    ),
    (
        "daba: a step forgets what lies behind the turn",
        "daba.py",
        'r = combine(r, {shape.load("s", "after")})',
        "r = combine(r, identity)",
        "tests/merging/test_fifo_windows.py -k daba",
    ),
    (
        "slick_deque: of two zeros the wrong one is kept",
        "slick_deque.py",
        'return f"(({x} == {y} and {zeros}) or ({x} != {x} and {y} != {y}))"',
        'return f"({x} == {y} or ({x} != {x} and {y} != {y}))"',
        "tests/merging/test_fifo_windows.py -k slick",
    ),
    (
        "flat_fat: a right node on the wrong side",
        "flat_fat.py",
        'right = combine({shape.load("t", "b")}, right)',
        'right = combine(right, {shape.load("t", "b")})',
        "tests/merging/test_fifo_windows.py -k flat_fat",
    ),
    (
        "subtract: the window is taken out of what leaves",
        "subtract.py",
        'invert({shape.load("b", "0")}, {shape.load("a", "i")})',
        'invert({shape.load("a", "i")}, {shape.load("b", "0")})',
        "tests/merging/test_fifo_windows.py -k subtract",
    ),
    (
        "pba: the first slice of a chunk is not cumulated",
        "pba.py",
        "for k in range(end - 2, start - 1, -1):",
        "for k in range(end - 2, start, -1):",
        "tests/merging/test_fifo_windows.py -k pba",
    ),
    (
        "sba: windows of different lengths are taken for equal ones",
        "sba.py",
        "size > 1 and bool((hi - lo == size).all()) and",
        "size > 1 and",
        "tests/merging/test_fifo_windows.py -k 'some_are_longer and sba'",
    ),
    (
        "multiset: ties of the mode go to the greatest",
        "multiset.py",
        "i = 2 * i if tree[2 * i] == tree[1] else 2 * i + 1",
        "i = 2 * i + 1 if tree[2 * i + 1] == tree[1] else 2 * i",
        f"{EACH_PAIR} and (tumbling or sliding)'",
    ),
    (
        "fiba: a batch is not sorted stably",
        "fiba.py",
        'order = np.argsort(times, kind="stable")',
        "order = np.argsort(times)",
        "tests/merging/test_fiba.py",
    ),
    (
        "fiba: a range holds its end",
        "fiba.py",
        'until=_entries_before("until", "hi")',
        'until=_entries_before("until + 1", "hi")',
        "tests/merging/test_fiba.py -k range",
    ),
    (
        "lanes: what is newer comes first",
        "machine/lanes.py",
        "joined = f\"combine({shape.load('l', f'i + {lanes}')}, r)\"",
        "joined = f\"combine(r, {shape.load('l', f'i + {lanes}')})\"",
        "tests/merging/test_lanes.py",
    ),
)

COMPILING = _breaks(
    "compiling/",
    (
        "identity: what a function calls does not count",
        "identity.py",
        "self.value(function.__globals__[name])",
        "pass",
        "tests/test_cache.py -k changes",
    ),
    (
        "identity: two kernels that differ in a closure are one",
        "identity.py",
        "self.value(cell.cell_contents)",
        "self.say(type(cell.cell_contents).__name__)",
        "tests/test_cache.py -k factory",
    ),
    (
        "kernel: what Numba was told does not count",
        "kernel.py",
        "                settings,\n",
        "",
        "tests/test_cache.py -k numba_was_told",
    ),
    (
        "kernel: a damaged file is read",
        "kernel.py",
        "if digest == hashlib.sha256(data).digest() else None",
        "if len(digest) == DIGEST else None",
        "tests/test_cache.py -k damaged",
    ),
    (
        "kernel: whoever has waited compiles again",
        "kernel.py",
        "                found = _read(path)\n",
        "",
        "tests/test_cache.py -k meanwhile",
    ),
    (
        "folder: a folder that a group can write to is trusted",
        "folder.py",
        "(stat.S_IWGRP | stat.S_IWOTH)",
        "stat.S_IWOTH",
        "tests/test_cache.py -k trusted",
    ),
    (
        "turns: a lock file that is gone counts as held",
        "turns.py",
        "if os.path.samestat(os.fstat(handle), os.stat(path)):",
        "if handle >= 0:",
        "tests/test_cache.py -k removed_meanwhile",
    ),
    (
        "turns: half a compilation is given up for other work",
        "turns.py",
        "        with _waiting(True):\n            yield\n",
        "        yield\n",
        "tests/test_cache.py -k not_given_up",
    ),
    (
        "turns: other work waits for what another process compiles",
        "turns.py",
        "with _waiting(False), contextlib.suppress(Taken):",
        "with contextlib.suppress(Taken):",
        "tests/test_cache.py -k done_last",
    ),
    (
        "turns: a turn that is taken passes for a failure of a user's function",
        "turns.py",
        "class Taken(BaseException):",
        "class Taken(Exception):",
        "tests/test_cache.py -k functions_of_a_user",
    ),
)

AGGREGATES = _breaks(
    "aggregates/",
    (
        "laws: an order that matters is not noticed",
        "laws.py",
        "        if commutative:\n",
        "        if commutative and a == b:\n",
        "tests/aggregates/test_laws.py",
    ),
    (
        "laws: an identity before a partial is not tried",
        "laws.py",
        "in ((identity, a), (a, identity)):",
        "in ((a, identity),):",
        "tests/aggregates/test_laws.py",
    ),
    (
        "sum: the low limb is cut off one bit early",
        "sums.py",
        "(carried << 32) | (low & 0xFFFFFFFF), fits",
        "(carried << 32) | (low & 0x7FFFFFFF), fits",
        f"{EACH_PAIR} and (tumbling or sliding)'",
    ),
    (
        "sum: an overflow passes",
        "sums.py",
        "fits = (carried >= -(1 << 31)) & (carried < (1 << 31))",
        "fits = (carried >= -(1 << 31)) & (carried <= (1 << 31))",
        "tests/bad_input/test_integer_sums.py -k one_beyond_int64",
    ),
    (
        "exact sum: ties are rounded up",
        "_numerics/exact_sum.py",
        "if rest != 0 or digits & 1:",
        "if rest != 0 or digits:",
        "tests/aggregates/test_exact_sum.py",
    ),
    (
        "last: of equal times the first",
        "extremes.py",
        "return q if q[0] >= p[0] else p",
        "return q if q[0] > p[0] else p",
        f"{EACH_PAIR} and (tumbling or sliding)'",
    ),
    (
        "max: NaN is less than a number",
        "extremes.py",
        "return b if b > a or (b != b and a == a) else a",
        "return b if b > a or (a != a and b == b) else a",
        "tests/aggregates/test_nan.py",
    ),
    (
        "var: of a single value",
        "spread.py",
        "valid = n > self.taken",
        "valid = n >= self.taken",
        f"{EACH_PAIR} and (tumbling or sliding)'",
    ),
    (
        "running deviation: the origin stays where it was",
        "_numerics/running_deviation.py",
        "if n & (n - 1) == 0:",
        "if n < 0:",
        "tests/aggregates/test_running_deviation.py",
    ),
    (
        "deviation: the wrong part is weighted",
        "_numerics/deviation.py",
        "step * gap * p[0], p[4]",
        "step * gap * q[0], p[4]",
        "tests/properties/test_moments.py",
    ),
    (
        "bloom filter: one hash too few",
        "_bloom.py",
        "for _ in range(hashes):",
        "for _ in range(hashes - 1):",
        "tests/aggregates/test_bloom.py",
    ),
    (
        "operator: parameters do not tell operators apart",
        "operator.py",
        "    parameters: tuple[Any, ...] = ()\n    bare",
        "    parameters: tuple[Any, ...] = field(default=(), compare=False)\n    bare",
        "tests/aggregates/test_sharing.py tests/test_plan.py",
    ),
    (
        "function identity: two functions that read different captured values are one",
        "_functions/identity.py",
        '    "LOAD_DEREF": "captured",\n',
        "",
        "tests/aggregates/test_function_identity.py",
    ),
)

TABLES = _breaks(
    "tables/",
    (
        "dicts: columns are those of the first row",
        "dicts.py",
        "for row in rows for name in row if is_name(name)",
        "for row in rows[:1] for name in row if is_name(name)",
        "tests/test_tables.py -k dict",
    ),
    (
        "columns: a NaN of pandas is a value",
        "columns.py",
        "from_pandas=not isinstance(values, list)",
        "from_pandas=False",
        "tests/test_tables.py -k pandas",
    ),
    (
        "streams: a reader is read twice",
        "streams.py",
        "        _spent.add(table)\n",
        "",
        "tests/test_arrow_streams.py",
    ),
)

ASKING = _breaks(
    "",
    (
        "query: lateness is lost with other windows",
        "query.py",
        "return Query(windows, self.aggregates, self.key, self.time, self.lateness)",
        "return Query(windows, self.aggregates, self.key, self.time)",
        "tests/test_display.py -k otherwise",
    ),
    (
        "stating: two windows of one label are one",
        "stating.py",
        "if len(found) < len(given):",
        "if len(found) > len(given):",
        "tests/test_wrong_arguments.py tests/bad_input",
    ),
    (
        "warming: tables out of order are forgotten",
        "warming.py",
        "LOOKS = ((1, True), (3, True), (3, False))",
        "LOOKS = ((1, True), (3, True))",
        "tests/test_cache.py -k warming_up",
    ),
    (
        "display: HTML is not escaped",
        "_display.py",
        '<br>".join(_escaped(item) for',
        '<br>".join(item for',
        "tests/test_display.py",
    ),
    (
        "planning: a tree for late slices is forgotten",
        "planning/merge_choice.py",
        "if late > SELDOM_LATE:",
        "if late < -SELDOM_LATE:",
        "tests/merging/test_stream_choice.py",
    ),
)

ORACLE = _breaks(
    "engines/oracle/",
    (
        "oracle: an event at a boundary is in",
        "windows.py",
        "if events.times[row] < boundary]",
        "if events.times[row] <= boundary]",
        "tests/test_semantics_vectors.py",
    ),
    (
        "oracle: rows by label before end",
        "__init__.py",
        "return (end, label, seq, *map(order, key))",
        "return (label, end, seq, *map(order, key))",
        "tests/test_order.py",
    ),
)

TABLE = _breaks(
    "engines/table/",
    (
        "rows: not sorted by number where ends are equal",
        "rows.py",
        "        fields.append(seq)\n",
        "        pass\n",
        "tests/test_order.py",
    ),
    (
        "cutting: the first slice of a key runs on from the key before",
        "cutting.py",
        "    fresh[part.offsets[:-1][part.offsets[:-1] < len(t)]] = True\n",
        "",
        "tests/properties/test_slices.py",
    ),
    (
        "cutting: an event at an edge is in the slice before",
        "cutting.py",
        'np.searchsorted(listed, t, side="right") - 1',
        'np.maximum(np.searchsorted(listed, t, side="left") - 1, 0)',
        "tests/properties/test_slices.py",
    ),
    (
        "slices: parts of a session are met in order of time",
        "from_slices.py",
        "order = stable_order([member, self._rows], len(self._rows))",
        "order = stable_order([member], len(self._rows))",
        "tests/properties/test_slices.py",
    ),
    (
        "placing: keys of one window are counted from the wrong place",
        "placing.py",
        "following = np.cumsum(counts) - counts",
        "following = np.cumsum(counts) - counts[0]",
        "tests/test_order.py tests/test_many_rows.py",
    ),
)

LIVE = _breaks(
    "engines/live/",
    (
        "live: a session closes at its last chance",
        "closed.py",
        "latest + window.gap.value < watermark, found",
        "latest + window.gap.value <= watermark, found",
        "tests/spark/test_live.py tests/properties/test_open_windows.py",
    ),
    (
        "live: windows that end at the watermark before come again",
        "open_events.py",
        "past &= end >= before if session else end > before",
        "past &= end >= before",
        "tests/properties/test_open_windows.py tests/spark/test_live.py",
    ),
    (
        "live: what is late for one window is late for all",
        "open_windows.py",
        "over = np.logical_and.reduce([missed | nowhere",
        "over = np.logical_or.reduce([missed | nowhere",
        "tests/spark/test_live.py",
    ),
    (
        "live: an event in a gap is late",
        "closed.py",
        "return (ends <= watermark) & ~nowhere, nowhere",
        "return ends <= watermark, nowhere",
        "tests/spark/test_live.py",
    ),
    (
        "live: slices are forgotten a window early",
        "open_slices.py",
        "ended = self._last_end(slices) <= watermark",
        "ended = self._last_end(slices) <= watermark + 1",
        "tests/properties/test_open_windows.py tests/spark/test_live.py",
    ),
    (
        "live: one event of slide_by_time too many is forgotten",
        "forgetting.py",
        "np.maximum(counts - window.size, 0), none",
        "np.maximum(counts - window.size + 1, 0), none",
        "tests/properties/test_open_windows.py tests/spark/test_live.py",
    ),
    (
        "live: rows that a batch has not changed are shown again",
        "changed.py",
        "hit: Array = behind > first",
        "hit: Array = behind >= first",
        "tests/spark/test_live.py",
    ),
)

SPARK = _breaks(
    "engines/spark/",
    (
        "spark: a run commits though a newer one has begun and cleaned up",
        "sinks/lease.py",
        "        if greatest != number:\n",
        "        if greatest is None:\n",
        "tests/spark/test_lease.py",
    ),
    (
        "spark: a file takes the place of another run's",
        "storage/local_files.py",
        "            os.link(draft, path)\n",
        "            os.replace(draft, path)\n",
        "tests/spark/test_lease.py",
    ),
    (
        "spark: rows of a run that was overtaken count",
        "sinks/parquet_files.py",
        "                self.storage.replace(name, nothing)",
        "                pass",
        "tests/spark/test_restart.py -k middle",
    ),
    (
        "spark: rows of a run that is overtaken later count",
        "sinks/memory.py",
        'before = found["rivals"] + ([found["run"]] if self.begun else [])',
        'before = found["rivals"]',
        "tests/spark/test_restart.py -k middle",
    ),
    (
        "spark: a damaged file of the checkpoint is read",
        "sinks/memory.py",
        "if self._sums.setdefault(name, checksum(data)) != checksum(data):",
        "if self._sums.setdefault(name, checksum(data)) == '':",
        "tests/spark/test_damage.py",
    ),
    (
        "spark: a commit that was changed is read",
        "sinks/commits.py",
        "elif given != _check_of(found):",
        "elif given is None:",
        "tests/spark/test_damage.py",
    ),
    (
        "spark: a batch that is done is answered again",
        "sinks/memory.py",
        "return bool(batch > last)",
        "return bool(batch >= last)",
        "tests/spark/test_restart.py -k done_already",
    ),
    (
        "spark: the windows of a block's last events are left out",
        "finite/positions.py",
        "end = min((block + 1) * length + longest - 1, behind)",
        "end = min((block + 1) * length + longest - 2, behind)",
        "tests/spark/test_positions.py",
    ),
    (
        "spark: parcels of a shard in the order they came",
        "unbounded/shard_state.py",
        "for _, parcel in sorted(parcels, key=lambda p: p[0])]",
        "for _, parcel in parcels[::-1]]",
        "tests/spark/test_shard_state.py",
    ),
)

INTAKE = _breaks(
    "engines/multicore/",
    (
        "intake: lateness is lost",
        "intake/front.py",
        "wm = max(wm, least - lateness)",
        "wm = max(wm, least)",
        "tests/multicore/test_late_events.py tests/multicore/test_stragglers.py",
    ),
    (
        "intake: lateness is lost where a single source is in order",
        "intake/front.py",
        "max(self.watermark, int(self._frontiers[0]) - self._lateness)",
        "max(self.watermark, int(self._frontiers[0]))",
        "tests/multicore/test_late_events.py tests/multicore/test_stragglers.py",
    ),
    (
        "intake: the fastest source moves the watermark",
        "intake/front.py",
        "                least = frontiers.min()\n",
        "                least = frontiers.max()\n",
        "tests/multicore/test_stream_properties.py tests/multicore/test_stream_results.py",
    ),
    (
        "intake: events of one time are final before other sources have come so far",
        "intake/front.py",
        "self._held.release(self.watermark + self._single)",
        "self._held.release(self.watermark + 1)",
        "tests/multicore/test_stream_properties.py tests/multicore/test_stream_results.py",
    ),
    (
        "intake: an ended source holds the watermark back",
        "intake/front.py",
        "self._frontiers[source] = SILENT if arrival.silent else END_OF_STREAM",
        "self._frontiers[source] = SILENT if arrival.silent else reached",
        "tests/multicore/test_stream_lifecycle.py tests/multicore/test_stream_results.py",
    ),
    (
        "intake: a source that speaks again is not waited for",
        "intake/front.py",
        "self._frontiers[source] = self._asleep.pop(source)",
        "self._asleep.pop(source)",
        "tests/multicore/test_idle_streams.py tests/multicore/test_stragglers.py -k silent",
    ),
    (
        "intake: sources of one time in the order they came",
        "intake/held_events.py",
        "order = stable_order([run.t, run.source] if len(run.source) else [run.t], len(run))",
        "order = stable_order([run.t], len(run))",
        "tests/multicore/test_held_events.py",
    ),
    (
        "intake: a straggler joins a session that has closed",
        "intake/stragglers.py",
        "within = t[i] + gaps[g] >= now or",
        "within = t[i] + gaps[g] >= now - 1 or",
        "tests/multicore/test_stragglers.py",
    ),
    (
        "intake: an event between windows is late",
        "intake/stragglers.py",
        "of[i] = LATE if some else IN_NO_WINDOW",
        "of[i] = LATE",
        "tests/multicore/test_late_events.py tests/multicore/test_stragglers.py",
    ),
    (
        "intake: events without a time are not counted",
        "intake/admission.py",
        "return Admitted(batch, places, timeless, latest, ahead, kept, in_order)",
        "return Admitted(batch, places, 0, latest, ahead, kept, in_order)",
        "tests/multicore/test_stream_results.py -k without_a_time",
    ),
    (
        "intake: times that fall count as in order",
        "intake/admission.py",
        "falls += times[i] < times[i - 1]",
        "falls += 0",
        "tests/multicore/test_shared_slices.py tests/multicore/test_stragglers.py",
    ),
    (
        "intake: a push in order that begins behind the watermark is let in",
        "intake/unordered_front.py",
        "        if begin < watermark:\n            return False\n",
        "",
        "tests/multicore/test_shared_slices.py tests/multicore/test_stragglers.py",
    ),
    (
        "intake: a push of the only source that begins behind the watermark is let in",
        "intake/unordered_front.py",
        "if span is None or span[0] < watermark:",
        "if span is None:",
        "tests/multicore/test_shared_slices.py tests/multicore/test_stragglers.py",
    ),
    (
        "slices: rows leave before a shard that closes windows later has closed them",
        "workers/farm.py",
        "return min([message.passed, *self._reached.values()])",
        "return message.passed",
        "tests/multicore/test_shared_slices.py",
    ),
    (
        "pump: what a stream holds refers to itself",
        "pump/shared.py",
        "check_late_can_end(results, since)",
        "check_late_can_end(self.results, since)",
        "tests/multicore/test_stream_lifecycle.py -k freed_with",
    ),
    (
        "pump: what fails as the last rows are taken is not told",
        "pump/pipeline.py",
        "        self.strategy.check()  # some lower windows only as their rows are taken\n",
        "",
        "tests/multicore/test_stream_lifecycle.py -k slow_units",
    ),
    (
        "pump: steps that were not answered count as steps without rows",
        "pump/step_length.py",
        "* self._answered //",
        "* self._taken //",
        "tests/multicore/test_step_length.py",
    ),
    (
        "intake: a piece of a push is read from its beginning",
        "intake/front.py",
        "push.slice(begin, sum",
        "push.slice(0, sum",
        "tests/multicore/test_shared_slices.py",
    ),
    (
        "slices: events without a value are counted",
        "slices/slice_loops.py",
        "            counts[np.uint64(cell)] += len(present) == 0 or present[i]",
        "            counts[np.uint64(cell)] += 1",
        "tests/multicore/test_shared_slices.py",
    ),
    (
        "slices: the last event of one key is lost",
        "slices/slice_loops.py",
        "    starts[found] = len(t)",
        "    starts[found] = len(t) - 1",
        "tests/multicore/test_shared_slices.py",
    ),
    (
        "slices: shards are one key apart",
        "slices/dealing.py",
        "return (codes << self.bits) | shard",
        "return (codes << self.bits) | (shard ^ 1)",
        "tests/multicore/test_shared_slices.py",
    ),
    (
        "slices: windows close before the last slices have joined",
        "slices/shared_windows.py",
        "        self._release(max(watermark",
        "        self._release(-1 + max(watermark",
        "tests/multicore/test_shared_slices.py",
    ),
    (
        "intake: a small key that is unknown has the code of another",
        "intake/key_codes.py",
        "known &= out[i] >= 0",
        "out[i] = max(out[i], 0)",
        "tests/multicore/test_stream_input.py tests/multicore/test_stream_results.py",
    ),
)

PUMP = _breaks(
    "engines/multicore/",
    (
        "pump: a push that finds another thread at work wakes nobody",
        "pump/pushing.py",
        "                with self._lock:\n                    shared.work_comes.notify()\n"
        "                return\n",
        "                return\n",
        "tests/multicore/test_pushing.py -k another_pusher",
    ),
    (
        "pump: a thread that reads between pushes waits for itself",
        "pump/pushing.py",
        "return self._shared.results.lets_push() or self._shared.late.lets_push()",
        "return False",
        "tests/multicore/test_stream_lifecycle.py -k waits_for_itself",
    ),
    (
        "pump: a reader is not woken by rows",
        "pump/outbox.py",
        "            self._rows_come.wake()\n            if hand_over",
        "            if hand_over",
        "tests/multicore/test_outbox.py",
    ),
    (
        "pump: room that is made is not told",
        "pump/outbox.py",
        "        if self.full:\n            self._room_comes.notify()\n",
        "",
        "tests/multicore/test_outbox.py -k waits_for_room",
    ),
    (
        "pump: rows that are given back stand last",
        "pump/outbox.py",
        "self._tables.extendleft(reversed(tables))",
        "self._tables.extend(tables)",
        "tests/multicore/test_outbox.py tests/multicore/test_interrupts.py",
    ),
    (
        "pump: rows leave while others may come before them",
        "pump/row_order.py",
        "ready = rows.end < self.passed",
        "ready = rows.end <= self.passed",
        "tests/multicore/test_collector.py",
    ),
    (
        "pump: rows by number before label",
        "pump/row_order.py",
        "END, LABEL, SEQ, RANK, KEY, START = range(6)",
        "END, SEQ, LABEL, RANK, KEY, START = range(6)",
        "tests/multicore/test_collector.py tests/multicore/test_stream_results.py",
    ),
    (
        "pump: sources fall silent while a push waits for room",
        "pump/silence.py",
        "        if self._pauses or now < self._soonest:",
        "        if now < self._soonest:",
        "tests/multicore/test_idle_streams.py",
    ),
    (
        "pump: rows of all open windows are early, changed or not",
        "pump/early_rows.py",
        "hit = np.zeros(len(rows), np.bool_)",
        "return rows",
        "tests/multicore/test_early_rows.py",
    ),
    (
        "one worker: early rows close sessions",
        "one_worker/single.py",
        "changed.undo()",
        "pass",
        "tests/multicore/test_early_rows.py",
    ),
    (
        "closing: what was seen is forgotten when events get new places",
        "closing/finders.py",
        "self._seen = self._settled = int(",
        "self._seen = int(",
        "tests/multicore/test_early_rows.py",
    ),
    (
        "completeness: rows at the watermark are held back",
        "completeness.py",
        "            return watermark + 1\n",
        "            return watermark\n",
        "tests/multicore/test_stream_results.py",
    ),
)

THREADS = _breaks(
    "engines/multicore/",
    (
        "threads: a bell that rings wakes nobody",
        "threads/ring.py",
        "if self.asleep and not self._instead():",
        "if self.asleep and self._instead():",
        "tests/multicore/test_rings.py",
    ),
    (
        "threads: a full ring overwrites a message",
        "threads/ring.py",
        "return len(self) == len(self._slots)",
        "return len(self) > len(self._slots)",
        "tests/multicore/test_rings.py",
    ),
    (
        "threads: messages behind a failure are worked on",
        "threads/unit.py",
        "return self.failure is not None and seq >= self.failure.seq",
        "return self.failure is not None and seq == self.failure.seq",
        "tests/multicore/test_failures.py tests/multicore/test_rows_before_failures.py",
    ),
    (
        "stores: values are restored in the wrong order",
        "stores/growing.py",
        "keys, before = self._noted.pop()",
        "keys, before = self._noted.pop(0)",
        "tests/multicore/test_slices_of_a_stream.py",
    ),
)

STRATEGIES = _breaks(
    "engines/multicore/",
    (
        "one worker: slices of two batches in the wrong order",
        "one_worker/slice_runs.py",
        "once(together([before.block, last.block]))",
        "once(together([last.block, before.block]))",
        "tests/multicore/test_slices_of_a_stream.py",
    ),
    (
        "one worker: a straggler misses the merges that are kept",
        "one_worker/sliding_windows.py",
        "            self._behind.append(block.at(block.start < ended_until(self.window, before)))",
        "            pass",
        "tests/multicore/test_stragglers.py",
    ),
    (
        "one worker: slices that open windows need are dropped",
        "one_worker/slice_runs.py",
        "elif run.latest >= first:",
        "elif run.latest > first:",
        "tests/multicore/test_slices_of_a_stream.py",
    ),
    (
        "one worker: a session closes when an event may still join it",
        "one_worker/by_sessions.py",
        "state[LATEST, k] + gap < watermark:",
        "state[LATEST, k] + gap <= watermark:",
        f"{EACH_WINDOW} and session'",
    ),
    (
        "closing: a count window is an event short",
        "closing/loops.py",
        "if position == start + size - 1:",
        "if position == start + size - 2:",
        "tests/multicore/test_closing.py",
    ),
    (
        "closing: events are forgotten that a time window needs",
        "closing/finders.py",
        "last_end(self.window, self.log.t) > self._before",
        "last_end(self.window, self.log.t) > self._before + 1",
        "tests/multicore/test_closing.py",
    ),
    (
        "ring: a later message overtakes",
        "topologies/cycle.py",
        "there.work.seq < self._next_here",
        "there.work.seq < self._next_here + self.workers",
        f"{EACH_STRATEGY} and (hash_once or cyclic)'",
    ),
    (
        "round robin: a window at the end of a round belongs to nobody",
        "topologies/round_robin.py",
        "for window in range(first, since // slide + 1, workers):",
        "for window in range(first, since // slide, workers):",
        f"{EACH_STRATEGY} and round_robin'",
    ),
    (
        "pane line: a pane that open windows need is dropped",
        "topologies/pane_line.py",
        "cells.drop(held.number // panes.per_slide <= ended.now[0])",
        "cells.drop(held.number // panes.per_slide <= ended.now[0] + 1)",
        f"{EACH_STRATEGY} and pane_line'",
    ),
    (
        "result sets: a window joins one too early",
        "topologies/parts/result_sets.py",
        "over: Array = held.number <= span.ended(work.limit)",
        "over: Array = held.number <= span.ended(work.limit) + 1",
        f"{EACH_STRATEGY}'",
    ),
    (
        "cells: two keys share a window",
        "topologies/parts/cells.py",
        "if fields[NUMBER, cell] == n and fields[KEY, cell] == k:",
        "if fields[NUMBER, cell] == n:",
        "tests/multicore/test_slices_of_a_stream.py -k share_no_window",
    ),
    (
        "active: workers number windows alike",
        "workers/active.py",
        "seq=rows.seq * self._workers + self.rank",
        "seq=rows.seq * self._workers",
        "tests/multicore/test_every_pair.py -k active",
    ),
    (
        "active: an event misses the last of its workers",
        "workers/active.py",
        "min(last, first + workers - 1) + 1):",
        "min(last, first + workers - 2) + 1):",
        "tests/multicore/test_workers_active.py",
    ),
    (
        "agnostic: the last window is handed to nobody",
        "workers/agnostic.py",
        "edges = np.unique(np.concatenate([[0], marks, [len(windows)]])).tolist()",
        "edges = np.unique(np.concatenate([[0], marks, [len(windows) - 1]])).tolist()",
        "tests/multicore/test_every_pair.py -k agnostic",
    ),
    (
        "workers: rows of a message before it is complete",
        "workers/farm.py",
        "self._messages[0].parts == 0 and not crew.broken",
        "self._messages[0].parts <= 1 and not crew.broken",
        "tests/multicore/test_every_pair.py -k active",
    ),
)

EDGE = _breaks(
    "engines/edge/",
    (
        "nodes: the fastest node below decides",
        "nodes/below.py",
        "self.watermark = max(self.watermark, min(waited))",
        "self.watermark = max(self.watermark, max(waited))",
        "tests/edge/test_missing_nodes.py",
    ),
    (
        "nodes: a child does not wait for late events",
        "nodes/sources.py",
        "self.watermark = max(self.watermark, min(waited) - self._lateness)",
        "self.watermark = max(self.watermark, min(waited))",
        "tests/edge/test_sources.py",
    ),
    (
        "parts: slices of several nodes leave in the order in which they came",
        "parts/waiting.py",
        "if distinct.num_rows < 2:",
        "if distinct.num_rows:",
        "tests/edge/test_waiting.py",
    ),
    (
        "parts: a session that is open elsewhere is not waited for",
        "parts/sessions.py",
        "np.maximum(ticks(openings, START), watermark)",
        "ticks(openings, START)",
        "tests/edge/test_missing_nodes.py -k session",
    ),
    (
        "parts: the order in a group that a count window begins in is not asked for",
        "parts/counts/positions.py",
        "for position in (0, window.size - 1):",
        "for position in (window.size - 1,):",
        "tests/edge/test_counted.py -k 'oracles or asked'",
    ),
    (
        "parts: a gap that decides a quantile is taken for known",
        "parts/quantiles/narrowing.py",
        "(over > low[window])",
        "(over > high[window])",
        "tests/edge/test_quantiles.py",
    ),
    (
        "links: a report is taken although one before it is missing",
        "links/receiver.py",
        "        if message.number == self.wanted:\n            self.wanted += 1",
        "        if message.number >= self.wanted:\n            self.wanted = message.number + 1",
        "tests/edge/test_links.py",
    ),
    (
        "links: a report is forgotten that the parent does not have",
        "links/sender.py",
        "range(self.oldest, min(upto, self.newest) + 1)",
        "range(self.oldest, min(upto + 1, self.newest) + 1)",
        "tests/edge/test_links.py",
    ),
    (
        "journal: a snapshot is in place before the segment that follows it",
        "journal/journal.py",
        "            self._begin(number)\n            self._folder.put_in_place(path)",
        "            self._folder.put_in_place(path)\n            self._begin(number)",
        "tests/edge/test_journal_crashes.py",
    ),
    (
        "journal: a commit does not reach the disk",
        "journal/journal.py",
        "        self._sync(handle)\n        self._end += len(data)",
        "        self._end += len(data)",
        "tests/edge/test_journal.py tests/edge/test_journal_crashes.py",
    ),
    (
        "wire: a report is read against any preset",
        "wire/headers.py",
        "seed if packing == Packing.PRESET else 0",
        "0",
        "tests/edge/test_wire_messages.py tests/edge/test_wire_damage.py",
    ),
    (
        "running: what has arrived is acknowledged before it is in the log",
        "running/children.py",
        "        for data in received.messages:\n                self._read(received, data, now)\n",
        "        for data in received.messages:\n                self._read(received, data, now)\n"
        "        self.answer(now)\n",
        "tests/edge/running/test_nodes.py",
    ),
    (
        "running: the first part of a large report moves the watermark",
        "running/splitting.py",
        "yield Report(before, taken, report.missing)",
        "yield Report(report.watermark, taken, report.missing)",
        "src/paneflow/engines/edge/running/splitting.py",
    ),
    (
        "programme: an added query begins with events that were not cut for it",
        "programme/child.py",
        "[sources.latest() + 1]",
        "[sources.latest()]",
        "tests/edge/programme/test_missing_nodes.py",
    ),
    (
        "inputs: an MQTT message is acknowledged before it is in the log",
        "inputs/mqtt/ledger.py",
        "self._pending[0].position <= self._reached():",
        "self._pending[0].position <= self._reached() + 1:",
        "src/paneflow/engines/edge/inputs/mqtt/ledger.py",
    ),
    (
        "inputs: a file is read again from its beginning",
        "inputs/files.py",
        "pieces(path, format, self._columns, self._place.event)",
        "pieces(path, format, self._columns, 0)",
        "tests/edge/inputs/test_files.py",
    ),
    (
        "outputs: readers see steps that are half written",
        "outputs/numbered_files.py",
        'draft = self.folder / f"{_DRAFT}-{self._prefix}-{number}"',
        "draft = self.path(number)",
        "tests/edge/outputs/test_outputs.py",
    ),
    (
        "network: any known key may use any name",
        "network/authenticator.py",
        "return self._known.get(name) == key.encode()",
        "return key.encode() in self._known.values()",
        "tests/edge/network/test_sockets.py -k known_key",
    ),
)

MULTIWAY = _breaks(
    "engines/multicore/multiway/",
    (
        "multiway: a source that comes back holds back what is final",
        "source_front.py",
        "may hold it back from now on.\n        self._gather()\n",
        "may hold it back from now on.\n",
        "tests/multicore/multiway/test_sources_that_come_back.py",
    ),
    (
        "multiway: events that have to stay in order go into any lane",
        "hive.py",
        "not folded.in_order and all(",
        "all(",
        "tests/multicore/test_stragglers.py -k one_time",
    ),
)

BREAKS = [
    *WINDOWS,
    *AGGREGATES,
    *TABLES,
    *SLICING,
    *MERGING,
    *COMPILING,
    *ASKING,
    *ORACLE,
    *TABLE,
    *LIVE,
    *SPARK,
    *EDGE,
    *MULTIWAY,
    *INTAKE,
    *PUMP,
    *THREADS,
    *STRATEGIES,
]
