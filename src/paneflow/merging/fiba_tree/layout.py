"""The tree of FiBA as text: its layout, and insert, repair of aggregates and query as blocks.

Every node is one row of the integer table `tree` and `SLOTS` partials of the store `a`: its
entries, and behind them its aggregate. Which part of the tree an aggregate covers depends on
where the node stands (`repair`), so that a change near the newest or the oldest entry leaves all
but a few aggregates as they are. Operations change the shape first and *touch* the nodes they
changed; `repair` then brings the aggregates up to date, level by level.

The text consists of blocks of statements, not of functions that call each other: compiled code
counts references to every array at every call, which would cost more than the work itself.
"""

from __future__ import annotations

import re
from textwrap import dedent, indent

from paneflow.aggregates.kernels import Shape

MU = 4
"""The least number of children; twice as many are the most.

Measured for integers and rows of 22 floats, in order and at distances of 10 to 10,000: 3 to 5 do
equally well, with 2 the tree is too high, with 8 each repair takes too many combines.
"""
MOST = 2 * MU
"""Entries of a node that must be split; at rest a node holds one less."""
LEVELS = 32
"""More levels than any tree has that fits into memory."""

# Columns of a node. NEXT links the nodes that are touched, or free.
PARENT, SIZE, LEVEL, SPINE, NEXT, TIME = range(6)
CHILD = TIME + MOST
COLUMNS = CHILD + MOST + 1
SLOTS = MOST + 1
AGGREGATE = MOST

# On which spine a node lies; the root lies on both.
LEFT, RIGHT, BOTH = 1, 2, 3

# Counters. The last LEVELS of them start the chains of touched nodes, one for each level.
LENGTH, NODES, ROOT, OLDEST, NEWEST, FREE, USED, TOP, CHAINS = range(9)
COUNTERS = CHAINS + LEVELS
NONE, UNTOUCHED = -1, -2


def state(shape: Shape) -> str:
    """The arguments that hold a tree."""
    return f"m, identity, tree, {shape.names('a')}"


def weave(text: str, **blocks: str) -> str:
    """Put blocks of statements where a line says `<name>`, as far to the right as it does.

    >>> print(weave("while x:\\n    <step>", step="x -= 1\\ny += 1"))
    while x:
        x -= 1
        y += 1
    """

    def block(found: re.Match[str]) -> str:
        return indent(blocks[found[2]], found[1])

    return re.sub(r"^( *)<(\w+)>$", block, dedent(text).strip("\n"), flags=re.MULTILINE)


def entry(shape: Shape, node: str, i: str) -> str:
    """The partial of an entry of a node."""
    return shape.load("a", f"{node} * {SLOTS} + {i}")


def put(shape: Shape, node: str, i: str, partial: str) -> str:
    """Statements that write one."""
    return shape.store("a", f"{node} * {SLOTS} + {i}", partial)


def aggregate(shape: Shape, node: str) -> str:
    """The aggregate of a node."""
    return entry(shape, node, str(AGGREGATE))


def new(x: str, level: str, spine: str) -> str:
    """Make x a new node, from the free list if that has one; size and parent are not set."""
    return weave(
        f"""
        {x} = m[{FREE}]
        if {x} >= 0:
            m[{FREE}] = tree[{x}, {NEXT}]
        else:
            {x} = m[{USED}]
            m[{USED}] += 1
        m[{NODES}] += 1
        tree[{x}, {LEVEL}] = {level}
        tree[{x}, {SPINE}] = {spine}
        tree[{x}, {NEXT}] = {UNTOUCHED}
        """
    )


def above(x: str) -> str:
    """Put a new root u above the old one."""
    return weave(
        f"""
        <new>
        tree[u, {SIZE}] = 0
        tree[u, {PARENT}] = {NONE}
        tree[u, {CHILD}] = {x}
        tree[{x}, {PARENT}] = u
        m[{ROOT}] = u
        <touch>
        """,
        new=new("u", f"tree[{x}, {LEVEL}] + 1", str(BOTH)),
        touch=touch("u"),
    )


def touch(x: str) -> str:
    """Note that the aggregate of x must be computed anew."""
    return weave(
        f"""
        if tree[{x}, {NEXT}] == {UNTOUCHED}:
            h = tree[{x}, {LEVEL}]
            tree[{x}, {NEXT}] = m[{CHAINS} + h]
            m[{CHAINS} + h] = {x}
            m[{TOP}] = max(m[{TOP}], h)
        """
    )


def room(shape: Shape, x: str, k: str) -> str:
    """Move entries of x from k on, and the children behind them, one place to the right."""
    return weave(
        f"""
        for i in range(tree[{x}, {SIZE}], {k}, -1):
            tree[{x}, {TIME} + i] = tree[{x}, {TIME} + i - 1]
            tree[{x}, {CHILD} + i + 1] = tree[{x}, {CHILD} + i]
            e = {entry(shape, x, "i - 1")}
            {put(shape, x, "i", "e")}
        tree[{x}, {SIZE}] += 1
        """
    )


def settle(shape: Shape) -> str:
    """Split x if it is too full, then its parent, and so on; x ends as the last not split.

    The right part becomes a node y of its own, the entry between goes to the parent q.
    """
    return weave(
        f"""
        while tree[x, {SIZE}] == {MOST}:
            if x == m[{ROOT}]:
                <above>
            <new>
            tree[x, {SPINE}] &= {LEFT}
            if tree[x, {LEVEL}] == 0 and tree[y, {SPINE}] != 0:
                m[{NEWEST}] = y
            tree[x, {SIZE}] = {MU}
            tree[y, {SIZE}] = {MU - 1}
            for i in range({MU - 1}):
                tree[y, {TIME} + i] = tree[x, {TIME + MU + 1} + i]
                e = {entry(shape, "x", f"{MU + 1} + i")}
                {put(shape, "y", "i", "e")}
            if tree[x, {LEVEL}] > 0:
                for i in range({MU}):
                    c = tree[x, {CHILD + MU + 1} + i]
                    tree[y, {CHILD} + i] = c
                    tree[c, {PARENT}] = y
            q = tree[x, {PARENT}]
            j = 0
            while tree[q, {CHILD} + j] != x:
                j += 1
            <room>
            tree[q, {TIME} + j] = tree[x, {TIME + MU}]
            e = {entry(shape, "x", str(MU))}
            {put(shape, "q", "j", "e")}
            tree[q, {CHILD} + j + 1] = y
            tree[y, {PARENT}] = q
            <touch_x>
            <touch_y>
            x = q
        """,
        above=above("x"),
        new=new("y", f"tree[x, {LEVEL}]", f"tree[x, {SPINE}] & {RIGHT}"),
        room=room(shape, "q", "j"),
        touch_x=touch("x"),
        touch_y=touch("y"),
    )


def repair(shape: Shape) -> str:
    """Compute the aggregates of touched nodes, and of those that depend on them.

    Inner nodes cover all below them, and their parents are touched in turn. Nodes on the left
    spine cover all below but the first child, then what their parent covers; on the right spine
    what the parent covers, then all but the last child: these are computed downwards, to the
    leaf. The root covers all but its first and last child, and is in no other aggregate. If the
    tree has `grown` at its right end, then a node that was just split off there is the last but
    one child of its parent q, whose aggregate grows by the node's and one entry.
    """
    child = aggregate(shape, f"tree[x, {CHILD} + i]")
    return weave(
        f"""
        level = 0
        left = {NONE}
        right = {NONE}
        while True:
            if level <= m[{TOP}]:
                x = m[{CHAINS} + level]
                if x < 0:
                    level += 1
                    continue
                m[{CHAINS} + level] = tree[x, {NEXT}]
                tree[x, {NEXT}] = {UNTOUCHED}
                if tree[x, {SPINE}] == {LEFT}:
                    left = x
                    continue
                if tree[x, {SPINE}] == {RIGHT}:
                    right = x
                    continue
            elif left >= 0:
                x = left
                left = tree[x, {CHILD}] if tree[x, {LEVEL}] > 0 else {NONE}
            elif right >= 0:
                x = right
                right = tree[x, {CHILD} + tree[x, {SIZE}]] if tree[x, {LEVEL}] > 0 else {NONE}
            else:
                break
            size = tree[x, {SIZE}]
            spine = tree[x, {SPINE}]
            q = tree[x, {PARENT}]
            onward = (spine == {LEFT} or spine == {RIGHT}) and q != m[{ROOT}]
            # The children and entries to go through, behind the partial to begin with.
            first_child = (spine & {LEFT}) if tree[x, {LEVEL}] > 0 else size + 1
            last_child = size - (spine >> 1)
            first_entry = 0
            if onward and (spine == {RIGHT} or size == 0):
                r = {aggregate(shape, "q")}
            elif first_child == 0:
                r = {aggregate(shape, f"tree[x, {CHILD}]")}
                first_child = 1
            elif size > 0:
                r = {entry(shape, "x", "0")}
                first_entry = 1
            else:
                r = identity
            for i in range(size + 1):
                if first_child <= i <= last_child:
                    r = combine(r, {child})
                if first_entry <= i < size:
                    r = combine(r, {entry(shape, "x", "i")})
            if onward and spine == {LEFT} and size > 0:
                r = combine(r, {aggregate(shape, "q")})
            {put(shape, "x", str(AGGREGATE), "r")}
            if spine == 0 and not grown:
                <touch>
            if spine == 0 and grown and tree[q, {NEXT}] == {UNTOUCHED}:
                r = combine({aggregate(shape, "q")}, r)
                r = combine(r, {entry(shape, "q", f"tree[q, {SIZE}] - 1")})
                {put(shape, "q", str(AGGREGATE), "r")}
        m[{TOP}] = {NONE}
        """,
        touch=touch("q"),
    )


def finish(shape: Shape) -> str:
    """What ends every operation that is `busy`: split x if it must be, compute aggregates."""
    return weave(
        """
        if busy:
            <settle>
            if not grown:
                <touch>
            <repair>
        """,
        settle=settle(shape),
        touch=touch("x"),
        repair=repair(shape),
    )


def append(shape: Shape) -> str:
    """Insert the partial p at t, a time after all others; to be finished.

    Aggregates on the right spine grow at their end: one combine does, and where a node is split
    off, two for its parent.
    """
    return weave(
        f"""
        x = m[{NEWEST}]
        size = tree[x, {SIZE}]
        r = p
        if size > 0:
            r = combine({aggregate(shape, "x")}, p)
        {put(shape, "x", str(AGGREGATE), "r")}
        tree[x, {TIME} + size] = t
        {put(shape, "x", "size", "p")}
        tree[x, {SIZE}] = size + 1
        m[{LENGTH}] += 1
        grown = True
        busy = size + 1 == {MOST}
        """
    )


def insert(shape: Shape) -> str:
    """Insert the partial p at any time t; to be finished."""
    return weave(
        f"""
        x = m[{NEWEST}]
        size = tree[x, {SIZE}]
        if size == 0 or t > tree[x, {TIME - 1} + size]:
            <append>
        else:
            <near>
            <down>
            if {holds("x", "k")}:
                p = combine({entry(shape, "x", "k")}, p)
            else:
                <room>
                tree[x, {TIME} + k] = t
                m[{LENGTH}] += 1
            {put(shape, "x", "k", "p")}
            grown = False
            busy = True
        """,
        append=append(shape),
        near=near(),
        down=down(),
        room=room(shape, "x", "k"),
    )


def near() -> str:
    """Finger search: up from both ends to the first node x below which t must be."""
    return weave(
        f"""
        x = m[{NEWEST}]
        y = m[{OLDEST}]
        while x != m[{ROOT}]:
            q = tree[x, {PARENT}]
            if t > tree[q, {TIME - 1} + tree[q, {SIZE}]]:
                break
            x = q
            q = tree[y, {PARENT}]
            if tree[q, {SIZE}] > 0 and t < tree[q, {TIME}]:
                x = y
                break
            y = q
        """
    )


def down() -> str:
    """From a node x to the node x and place k where t is, or in a leaf would be."""
    return weave(
        f"""
        while True:
            k = 0
            while k < tree[x, {SIZE}] and tree[x, {TIME} + k] < t:
                k += 1
            if tree[x, {LEVEL}] == 0 or ({holds("x", "k")}):
                break
            x = tree[x, {CHILD} + k]
        """
    )


def holds(x: str, k: str) -> str:
    """Whether t is at a place."""
    return f"{k} < tree[{x}, {SIZE}] and tree[{x}, {TIME} + {k}] == t"


def query(shape: Shape) -> str:
    """The whole window as r: oldest leaf, root, newest leaf."""
    return weave(
        f"""
        r = {shape.fresh(aggregate(shape, f"m[{ROOT}]"))}
        if m[{OLDEST}] != m[{ROOT}]:
            r = combine({aggregate(shape, f"m[{OLDEST}]")}, r)
            r = combine(r, {aggregate(shape, f"m[{NEWEST}]")})
        """
    )
