"""How much work the algorithms do, counted and not timed: combines, and partials kept.

The bounds are those of table 1 of Zhang, Akbarinia, Toumani, "Efficient Incremental Computation of
Aggregations over Sliding Windows" (KDD 2021), and, for the Lite variants, of Tangwongsan, Hirzel,
Schneider, VLDB Journal 30 (2021). A slide is an evict, an insert and a query, in a window of n
partials.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

from paneflow.aggregates.operator import Component, Input, Operator
from paneflow.merging.contract import Fifo, power
from paneflow.merging.daba import DABA, DABA_LITE
from paneflow.merging.flat_fat import FLAT_FAT
from paneflow.merging.flat_fit import FLAT_FIT
from paneflow.merging.linked import LinkedFifo
from paneflow.merging.pba import Pba
from paneflow.merging.sba import SBA
from paneflow.merging.slick_deque import slick_deque
from paneflow.merging.subtract import SUBTRACT
from paneflow.merging.two_stacks import TWO_STACKS, TWO_STACKS_LITE
from tests.merging.cases import TRACES

Open = Callable[[Operator], Fifo]

two_stacks: Open = partial(Fifo, TWO_STACKS)
two_stacks_lite: Open = partial(Fifo, TWO_STACKS_LITE)
daba: Open = partial(Fifo, DABA)
daba_lite: Open = partial(Fifo, DABA_LITE)
flat_fit: Open = partial(LinkedFifo, FLAT_FIT)
subtract: Open = partial(Fifo, SUBTRACT)

SIZES = (1, 2, 3, 10, 64, 100)


@dataclass
class Meter:
    """A window whose combines and inversions are counted, operation by operation.

    What another thread combines is counted apart.
    """

    open: Open
    selective: bool = False
    invertible: bool = False
    done: int = 0
    elsewhere: int = 0
    worst: dict[str, int] = field(default_factory=lambda: dict.fromkeys("ieq", 0))

    def __post_init__(self) -> None:
        self.caller = threading.get_ident()
        # The greatest for selective algorithms, else a sum; as plain Python, so that it counts.
        component = Component("value", "int64")
        self.window = self.open(
            Operator(
                "counted",
                (Input("v"),),
                (component,),
                (np.iinfo(np.int64).min if self.selective else 0,),
                self._greater if self.selective else self._add,
                invert=self._subtract if self.invertible else None,
                selective=self.selective,
                compiled=False,
            )
        )

    def _greater(self, a: int, b: int) -> int:
        self.done += 1
        return b if b > a else a

    def _add(self, a: int, b: int) -> int:
        if threading.get_ident() == self.caller:
            self.done += 1
        else:
            self.elsewhere += 1
        return a + b

    def _subtract(self, whole: int, part: int) -> int:
        self.done += 1
        return whole - part

    def act(self, act: str, value: int = 0) -> int:
        """Do one operation; how many combines it took."""
        before = self.done
        if act == "i":
            self.window.insert(value)
        elif act == "e":
            self.window.evict()
        else:
            self.window.query()
        spent = self.done - before
        self.worst[act] = max(self.worst[act], spent)
        return spent

    def slides(self, size: int, values: list[int]) -> list[int]:
        """Combines of each slide over values, once the window holds `size` partials."""
        for value in values[:size]:
            self.act("i", value)
        self.act("q")
        self.worst = dict.fromkeys("ieq", 0)
        return [self.act("e") + self.act("i", value) + self.act("q") for value in values[size:]]


def random_values(n: int) -> list[int]:
    return [int(v) for v in np.random.default_rng(3).integers(0, 1000, n)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("opened", [two_stacks, two_stacks_lite], ids=["full", "lite"])
def test_two_stacks_needs_at_most_three_combines_per_slide(opened: Open, size: int) -> None:
    """Amortised: one to push, one when the stack is turned, one to answer; n at worst."""
    meter = Meter(opened)
    spent = meter.slides(size, random_values(21 * size))
    assert sum(spent) <= 3 * len(spent)
    assert size <= max(spent) <= size + 2


WORST = {
    "full": (daba, {"i": 4, "e": 3, "q": 1}, 5),
    "lite": (daba_lite, {"i": 3, "e": 2, "q": 1}, 4),
}


@pytest.mark.parametrize("variant", WORST)
@pytest.mark.parametrize("trace", TRACES)
def test_daba_is_constant_in_the_worst_case(variant: str, trace: str) -> None:
    """Every single operation, whatever came before it."""
    opened, worst, _ = WORST[variant]
    meter = Meter(opened)
    for act in TRACES[trace]:
        meter.act(act, 1)
    assert all(meter.worst[act] <= worst[act] for act in worst)


@pytest.mark.parametrize("variant", WORST)
@pytest.mark.parametrize("size", [*SIZES, 1000])
def test_daba_slides_cost_the_same_for_every_size(variant: str, size: int) -> None:
    """At most 8 combines in a slide and 5 amortised (table 1); Lite 6 and 4.

    A turn takes half a window of slides, expensive ones first. So the mean is taken over whole
    turns, and what was spent beyond it at any time is less than a window.
    """
    opened, worst, amortised = WORST[variant]
    meter = Meter(opened)
    spent = meter.slides(size, random_values(7 * size))
    assert len(spent) == 6 * size
    assert max(spent) <= sum(worst.values())
    assert sum(spent) <= amortised * len(spent)
    assert (np.cumsum(spent) - amortised * np.arange(1, len(spent) + 1)).max() < size
    if size >= 10:
        # The bounds of single operations are met: a tighter one would be a mistake.
        assert meter.worst == worst


def test_daba_spikes_are_not_there() -> None:
    """The same slides, a thousand partials inside: Two-Stacks turns over, DABA does not."""
    values = random_values(5000)
    assert max(Meter(two_stacks).slides(1000, values)) >= 1000
    assert max(Meter(daba).slides(1000, values)) <= 8
    assert max(Meter(daba_lite).slides(1000, values)) <= 6


@pytest.mark.parametrize("size", SIZES)
def test_flat_fit_needs_at_most_three_combines_per_slide(size: int) -> None:
    """Amortised; a whole walk once every n + 1 slides."""
    meter = Meter(flat_fit)
    spent = meter.slides(size, random_values(21 * size + size))
    assert sum(spent) <= 3 * len(spent)
    assert max(spent) <= max(size - 1, 2)
    if size >= 10:
        walks = [at for at, combines in enumerate(spent) if combines > 3]
        assert len(walks) <= len(spent) / (size + 1) + 1
    assert meter.worst["i"] == meter.worst["e"] == 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("expected", [1, 2, 10], ids=lambda times: f"chunks of {times} windows")
def test_sba_needs_at_most_three_combines_per_slide(size: int, expected: int) -> None:
    """Amortised; a chunk at worst. Windows may be shorter than was expected."""
    meter = Meter(lambda operator: Fifo(SBA, operator, expected * size))
    spent = meter.slides(size, random_values(21 * size + size))
    assert sum(spent) <= 3 * len(spent)
    assert max(spent) <= size + 1
    assert meter.worst["q"] <= (1 if expected == 1 else size)


@pytest.mark.parametrize("size", [*SIZES, 511, 512, 513, 1024, 2400])
def test_pba_never_needs_more_than_three_combines_on_the_callers_path(size: int) -> None:
    """Every single slide: what the second thread combines costs the caller nothing.

    Only from 514 slices on do chunks have a head that the second thread sums up.
    """
    meter = Meter(lambda operator: Pba(operator, size))
    assert isinstance(meter.window, Pba)
    with meter.window:
        spent = meter.slides(size, random_values(4 * size + 100))
    assert max(spent) <= 3
    if size >= 10:
        assert max(spent) == 3
        assert sum(spent) < 3 * len(spent)
        # It cumulates all chunks that were filled from the left, but for their last partials.
        length = size // 2
        filled = (4 * size + 100) // length
        assert meter.elsewhere >= (filled - 1) * (length - 1)


@pytest.mark.parametrize("size", [*range(1, 70), 100, 511, 512, 513, 1000])
@pytest.mark.parametrize("expected", [1, 16, 1000])
def test_flat_fat_needs_one_combine_for_each_level(size: int, expected: int) -> None:
    """Every single slide, whatever n is and whatever length was expected."""
    meter = Meter(lambda operator: Fifo(FLAT_FAT, operator, expected))
    spent = meter.slides(size, random_values(6 * size))
    levels = math.log2(size)
    assert max(spent) <= math.ceil(levels) <= levels + 1
    if levels == int(levels):
        assert set(spent) == {levels}
    assert meter.worst["e"] == 0


@pytest.mark.parametrize("trace", TRACES)
def test_flat_fat_needs_two_combines_for_each_level_of_any_window(trace: str) -> None:
    """Single operations, whether the window grows, shrinks or is drained."""
    meter = Meter(partial(Fifo, FLAT_FAT))
    longest = 1
    for act in TRACES[trace]:
        meter.act(act, 1)
        longest = max(longest, len(meter.window))
    assert max(meter.worst.values()) <= 2 * math.ceil(math.log2(longest)) + 1


RISING = "rising: each drops the one before"
FALLING = "falling: none drops another"
ORDERS: dict[str, Callable[[int], list[int]]] = {
    RISING: lambda n: list(range(n)),
    FALLING: lambda n: list(range(n, 0, -1)),
    "equal": lambda n: [7] * n,
    "random": random_values,
    "falling, then one above all": lambda n: [n * (i % 50 == 49) - i % 50 for i in range(n)],
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("order", ORDERS)
def test_slick_deque_needs_fewer_than_two_combines_per_slide(order: str, size: int) -> None:
    """A partial is compared when it comes, and once more when it is dropped."""
    meter = Meter(slick_deque, selective=True)
    values = ORDERS[order](10 * size + 100)
    meter.slides(size, values)
    assert meter.done < 2 * len(values)
    assert meter.worst["e"] == meter.worst["q"] == 0
    assert meter.worst["i"] <= size


@pytest.mark.parametrize("opened", [subtract, slick_deque], ids=["subtract", "slick_deque"])
@pytest.mark.parametrize("size", SIZES)
def test_subtracting_needs_one_combine_and_one_inversion(opened: Open, size: int) -> None:
    meter = Meter(opened, invertible=True)
    assert set(meter.slides(size, random_values(10 * size))) == {2}
    assert meter.worst == {"i": 1, "e": 1, "q": 0}


STORED: dict[str, tuple[Callable[[Operator, int], Fifo], Callable[[int], float], bool]] = {
    "two_stacks": (partial(Fifo, TWO_STACKS), lambda n: 2 * n, False),
    "two_stacks_lite": (partial(Fifo, TWO_STACKS_LITE), lambda n: n + 1, False),
    "daba": (partial(Fifo, DABA), lambda n: 2 * n, False),
    "daba_lite": (partial(Fifo, DABA_LITE), lambda n: n + 2, False),
    "flat_fit": (partial(LinkedFifo, FLAT_FIT), lambda n: 2 * n, False),
    "flat_fat": (partial(Fifo, FLAT_FAT), lambda n: 2 * n, False),
    "slick_deque": (slick_deque, lambda n: 2 * n, True),
    "sba": (partial(Fifo, SBA), lambda n: n + 2, False),
    "pba": (Pba, lambda n: (3 * n + 13) / 2, False),
}


def close(window: Fifo) -> None:
    if isinstance(window, Pba):
        window.close()


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("size", [*SIZES, 600])
def test_no_more_is_stored_than_stated(name: str, size: int) -> None:
    """Table 1; links count as partials. SlickDeque keeps so much only if nothing is dropped."""
    opened, bound, selective = STORED[name]
    for order in (RISING, FALLING):
        meter = Meter(lambda operator: opened(operator, size), selective)
        for inserted, value in enumerate(ORDERS[order](3 * size)):
            if inserted >= size:
                meter.act("e")
            meter.act("i", value)
            meter.act("q")
            assert meter.window.stored <= bound(len(meter.window))
        close(meter.window)
        if order == FALLING and name != "pba":
            assert meter.window.stored == bound(size)
        elif selective:
            assert meter.window.stored == 2


@pytest.mark.parametrize("name", STORED)
def test_arrays_stay_as_small_as_the_window_needs(name: str) -> None:
    """What is stored is what `stored` says, but for rings that are a power of two long.

    PBA's main ring has room for a second window, so that its threads need not wait; those for
    chunks are short.
    """
    opened, _, selective = STORED[name]
    window = Meter(lambda operator: opened(operator, 16), selective).window
    for value in random_values(5000 if name != "pba" else 1000):
        window.slide(100, value)
    close(window)
    rings = {name: {len(column) for column in ring} for name, ring in window.rings.items()}
    if name == "pba":
        assert rings.pop("g") == rings.pop("h") == {power(128 // (16 // 2) + 2)}
    assert all(lengths == {128} for lengths in rings.values())
