"""The constants of this engine that are a matter of speed or memory.

They decide how fast a stream is and how much it holds, never which rows it gives. Code reads them
where it needs them, from the one instance `tuning`, so that tests can set them.

`python -m bench.multicore pushes latency held` shows what a change does; docs/benchmarks.md has
the figures for these values on two cores.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tuning:
    """One value for each choice, and what it was chosen for."""

    # What is pushed, and the steps it is worked on in (pump/).

    most_waiting: int = 2**19
    """Events that may wait for the stream thread before a push waits too: tens of megabytes.

    Where workers read what was pushed, it is twice as many, so that they find long batches."""
    pushed_piece: int = 2**14
    """Events of a push that are taken at once; a longer push is cut, so that steps stay short."""
    longest_step: int = 2**18
    """Events of a step with one worker: long, so that what a step costs by itself is shared."""
    longest_shared_step: int = 2**14
    """Events of a step with several workers: short, so that all of them have work at a time."""
    first_step: int = 2**14
    """Events of the first step, when it is not yet known how many rows an event makes."""
    unknown_step: int = 2**17
    """Events of a step, as long as no earlier step has been answered."""
    small_push: int = 4096
    """Fewer waiting events than this may wait for more, or be worked on by the pushing thread."""
    gathering: float = 0.002
    """Seconds that few events wait for more while workers are busy."""
    first_look: float = 0.0002
    """Seconds until the stream thread first looks for rows of workers that are busy."""
    slowest_look: float = 0.25
    """Seconds between looks at workers that have been busy for a second or more."""
    stuck_look: float = 0.5
    """Seconds after which a sleeping pusher or reader checks whether it waits for nothing."""
    rescue: float = 0.05
    """Seconds without new rows after which the workers of a failed stream count as done."""
    patience: float = 10.0
    """Seconds that a push waits for rows to be read if no other thread is known to read them."""

    # Whether the pushing thread or the stream thread works (pump/turns.py).

    straight_back: float = 0.00005
    """Seconds between two pushes of a thread that has more to push: longer than a loop takes."""
    left_over: float = 0.001
    """Seconds that events which a pushing thread has left over wait for its next push."""

    # What is to be read (pump/outbox.py), and kept in case of a failure (pump/last_steps.py).

    most_unread: int = 2**19
    """Rows that may wait to be read before the stream stops working: tens of megabytes."""
    handover: float = 0.0005
    """Seconds that a waiting reader is given to take rows before the next step begins."""
    ordered_together: int = 2**15
    """Rows that are put in order together, if parts of them are final by themselves."""
    most_kept: int = 2**20
    """Events that are kept to be answered again after a failure: tens of megabytes."""

    # Threads (threads/).

    short_message: float = 0.0015
    """Seconds of work on a message, up to which the thread that brings it does the work.

    Waking a thread takes some tens of microseconds for each PU that a message passes."""
    timed_one_in: int = 7
    """Of so many short steps one is timed.

    Reading a thread's clock takes about a microsecond, and a short message takes eight steps with
    four PUs: timing all of them would cost it 16 microseconds, out of a few hundred."""
    spins: int = 2000
    """Looks at a bell before a thread sleeps, some microseconds: most messages come in a row."""
    short_loop: int = 2**14
    """Steps of some nanoseconds each, up to which a loop keeps the interpreter lock.

    Giving it up costs some tens of microseconds, until this thread has the lock again."""

    # Arrays and runs that grow (intake/, stores/, closing/, one_worker/).

    first_room: int = 1024
    """Places in an array that grows by doubling."""
    longest_run: int = 2**16
    """Events of a sorted run, and slices of a run, that is merged with others no more.

    It bounds what one push may cost, however much is held (`held`)."""
    loose_slices: int = 4096
    """Fresh slices that are kept before they are joined with those of the same key and time."""
    joined_events: int = 4096
    """Events of a batch in the event log that is joined with others no more."""
    spare_slots: int = 2**14
    """Events in the log that no window needs any more, before the log closes up."""
    spare_sessions: int = 2**14
    """Cells of sessions that have ended, before those of open sessions close up."""
    spare_silent: int = 2**16
    """Events remembered for the key that has been silent for longest, before they close up."""
    direct_keys: int = 16_384
    """Integer keys that are looked up in an array by their value instead of in a dictionary."""
    joined_keys: int = 2**20
    """Keys of a batch of keys that is joined with others no more."""
    watched_overlap: int = 100
    """Windows to an event from which on a leap in time is checked for too many rows."""

    # Topologies (topologies/).

    under_way: int = 64
    """Messages under way to a PU, besides two for each PU: the thesis' queue size, in batches."""
    pairs: int = 2**15
    """Pairs of event and window that are worked on at a time, so that they stay in the cache."""
    carried_pairs: int = 2**15
    """Pairs of event and window that a message of `hash_once` carries, for the same reason."""
    first_cells: int = 64
    """Open windows or panes that a PU has room for at first; a power of two."""

    # Shared objects of many inputs (multiway/).

    most_winsets: int = 2**20
    """Intervals that may be open at a time; memory is used only for those that are."""
    most_tables: int = 2**21
    """Hash tables of keys that may be open at a time: usually one for each interval."""
    most_slots: int = 2**26
    """Places in these tables, for windows of a key and writer."""

    apart_keys: int = 2**12
    """Codes of keys from which on threads update different shares of the keys: their windows do not
    fit into the cache."""
    apart_events: int = 2**9
    """Events of a share up to which a batch is not taken apart."""
    apart_looks: int = 100
    """Looks at the lane of a share that another thread is in, before any lane is taken."""

    # Worker models (workers/).

    messages_ahead: int = 4
    """Messages that workers may have before them: one in work, and some so that none waits."""
    descriptors: int = 8
    """Parts that the windows of one step are cut into, for any number of workers: enough
    to level their sizes, as several steps are under way. How floats are grouped must not depend
    on the number of workers."""
    least_described: int = 2000
    """Events in such a part, below which handing it over costs more than the work on it."""
    most_described: int = 2_000_000
    """Events in such a part, above which it is cut, unless it is a single window."""

    # Batches that are dealt out to several workers (slices/).

    dealt_at_once: int = 2**18
    """Events that a worker reads and deals out at a time: half a millisecond of work.

    Between two compiled loops a worker needs the interpreter lock, so there should be few."""
    dealt_least: int = 2**14
    """Events below which a step is not shared any further."""
    looked_at_together: int = 2**12
    """Events of short pushes whose times are looked at together: a copy, but fewer calls."""
    close_together: int = 2**20
    """Events after which windows close though more batches are ready to join them.

    With many keys it costs as much to close one window as to close several."""
    rows_together: int = 2**15
    """Rows that windows would make, from which on they close all the same."""
    deal_here: int = 4096
    """Fewer events than this are dealt out by the thread that brings them, if workers are idle."""
    short_push: int = 512
    """Events of a push below which what is pushed together is dealt out there, too."""
    deals_ahead: int = 3
    """Batches for each worker that may be under way: one in work, and some so that none waits."""
    rows_at_once: int = 2**19
    """Rows that windows which slide one by one may make before these are passed on."""

    # Multiway inputs (multiway/).

    longest_node: int = 2**10
    """Tuples of a run in a T-Gate: inserting a node is then nothing beside copying its tuples."""
    tuples_per_node: int = 2**4
    """Tuples that a source's arena has room for, to one node: some inserts are short."""
    taken_at_once: int = 2**15
    """Tuples that a reader takes at a time: most of what sorts them stays in the second cache."""
    merger_room: int = 2**19
    """Tuples that the arenas of all sources have room for: some megabytes."""
    least_source_room: int = 2**9
    """Tuples that the arena of a source has room for, however many sources there are."""
    full_look: float = 0.01
    """Seconds after which a thread whose source has no room looks again, unless it is woken."""


tuning = Tuning()
