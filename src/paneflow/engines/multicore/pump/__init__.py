"""Moves a stream on: which thread works when, the steps from events to rows, and rows in order.

Who works when
--------------
One thread at a time works on a stream: the stream thread, or a pushing thread if the work is short.
It holds the *turn* (`Turns.lock`). A strategy with several workers hands the work on to its PUs,
which are threads too; if the work is short, the thread with the turn does it for them.

A pushing thread (`pushing.py`)::

    push ──▶ is there room? ──no──▶ ASLEEP until the stream thread has taken something ──▶ ask again
                  │ yes
                  ▼
    its events wait ──▶ short work, few events wait, and not resting?
                  │ yes                    │ no
                  ▼                        ▼
         is the turn free? ──no──▶ wake the stream thread if it waits for so many ──▶ return
                  │ yes
                  ▼
         WORKS on all that waits, makes rows readable ──▶ rests as long as it worked ──▶ return

    With a front that merges by itself (`multiway/source_front.py`), the thread adds its events to
    the merger before they wait, outside of all locks but that of its source.

    "Rests": what it pushes meanwhile waits, to be worked on together. A push that may have ended
    windows is worked on at once, unless the thread comes straight back with more.

The stream thread (`stream_thread.py`)::

    ┌──▶ too many rows unread? ──yes──▶ ASLEEP until they are read
    │             │ no
    │             ▼
    │    pushing threads do the work? ──yes──▶ ASLEEP until many events wait, or some for too long
    │             │ no
    │             ▼
    │    nothing has arrived? ──yes──▶ ASLEEP until something arrives, or until the next look at
    │             │ no                 what busy workers have finished
    │             ▼
    │    few events wait, and workers are busy? ──yes──▶ ASLEEP for a moment, for more
    │             │
    │             ▼
    └─── WORKS: a step on what waits, rows made readable; ends after `finish`, `close` or a failure

A PU (`threads/unit.py`)::

    ┌──▶ WORKS on its messages while there are any (holding its own turn)
    │             │ none left
    │             ▼
    │    does the work of PUs that it brought messages to and that are left asleep
    │             ▼
    │    messages are long? ──yes──▶ polls for some microseconds
    │             ▼
    └─── ASLEEP until a message arrives and messages are long, a failure, or the end;
         while messages are short, the thread that brings one does the work instead

A reading thread takes rows from the outbox, or is ASLEEP until there are some. A thread that makes
rows readable within a push lets a sleeping reader take them before it goes on.

The order of locks
------------------
A thread that holds a lock may take only locks further down this list:

1. `Stream`: its state, and whether its inside has begun
2. `Admission`: the columns of each source
3. `Turns`: the turn, held by the thread that works on the stream
4. `AddingFront`: one source, held by the thread that acts for it; never two at a time
5. `LockedQueues`: the queue of one source, held by the thread that puts in or takes out
6. `Shared`: what the threads of a stream share; the inbox and the outboxes use this lock
7. `Unit`: the turn of one PU, held by the thread that does its work; never two at a time
8. `Shares`: what workers that share batches have to do
9. `KeyCodes`: the keys of a stream, held while new ones are learned
10. `Schedule`: which agnostic workers are ready
11. `Gathering`: rows of workers that wait for those of earlier messages
12. `Crew`: the first failure

Only the turn may be held while waiting: for room in the PUs' rings, or for a reader. A pushing
thread that updates windows itself waits for its turn among a few of them while it holds its source
(`multiway/hive_units.py`); those before it take no lock until they are done. Everything else that
sleeps holds no lock: pushing and reading threads sleep on locks of their own
(`threads/interrupts.py`), PUs on their bells (`threads/ring.py`).

The garbage collector may abandon another stream at any point, which takes the `Shared` lock of that
stream. This is safe, because no thread of an unreferenced stream waits for this one.
"""
