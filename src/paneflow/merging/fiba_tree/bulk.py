"""Many entries of a FiBA tree at once, as text: evict all up to a time, insert a sorted batch.

Tangwongsan, Hirzel, Schneider, "Out-of-Order Sliding-Window Aggregation with Efficient Bulk
Evictions and Insertions", VLDB 2023. An eviction cuts along one path; a batch is spread over the
leaves, and what does not fit there over the nodes above, one level after the other. Either way
each aggregate is computed once, after the shape is settled.
"""

from __future__ import annotations

from paneflow.aggregates.kernels import Shape
from paneflow.merging.fiba_tree.layout import (
    BOTH,
    CHILD,
    FREE,
    LEFT,
    LENGTH,
    LEVEL,
    MOST,
    NEWEST,
    NEXT,
    NODES,
    NONE,
    OLDEST,
    PARENT,
    RIGHT,
    ROOT,
    SIZE,
    SLOTS,
    SPINE,
    TIME,
    above,
    down,
    entry,
    holds,
    near,
    new,
    put,
    repair,
    room,
    touch,
    weave,
)


def cut(shape: Shape) -> str:
    """Evict all entries whose time is at most t; to be finished.

    Entries leave only at the left, so only the left spine ever gets thin. A node there may lose
    all entries and keep one child, unless it is the root or a leaf. A root without entries gives
    way to its child. Where the oldest leaf is left without entries, the oldest entry, which is in
    a node above it, is cut off as well and put into the leaf that is then the oldest.
    """
    return weave(
        f"""
        x = m[{OLDEST}]
        grown = False
        busy = tree[x, {SIZE}] > 0 and tree[x, {TIME}] <= t
        if busy:
            # The highest node that loses an entry.
            y = x
            while y != m[{ROOT}]:
                y = tree[y, {PARENT}]
                if tree[y, {SIZE}] > 0:
                    if tree[y, {TIME}] > t:
                        break
                    x = y
            root = m[{ROOT}]
            high = tree[x, {LEVEL}]
            held = False
            p = identity
            while True:
                <path>
                if held or tree[x, {SIZE}] > 0 or x == m[{ROOT}]:
                    break
                while tree[x, {SIZE}] == 0:
                    x = tree[x, {PARENT}]
                high = max(high, tree[x, {LEVEL}])
                held = True
                t = tree[x, {TIME}]
                p = {shape.fresh(entry(shape, "x", "0"))}
            m[{OLDEST}] = x
            if held:
                <room>
                m[{LENGTH}] += 1
                tree[x, {TIME}] = t
                {put(shape, "x", "0", "p")}
            # Touch the left spine as high as it changed, and the right spine if its top is new.
            while True:
                <touch>
                if x == m[{ROOT}] or tree[x, {LEVEL}] == high:
                    break
                x = tree[x, {PARENT}]
            if root != m[{ROOT}]:
                x = m[{ROOT}]
                if tree[x, {LEVEL}] > 0:
                    x = tree[x, {CHILD} + tree[x, {SIZE}]]
                <touch>
            x = m[{OLDEST}]
        """,
        path=_path(shape),
        room=room(shape, "x", "0"),
        touch=touch("x"),
    )


def _path(shape: Shape) -> str:
    """From x down to the leaf x that is then the oldest, dropping entries up to t."""
    return weave(
        f"""
        while True:
            k = 0
            while k < tree[x, {SIZE}] and tree[x, {TIME} + k] <= t:
                k += 1
            m[{LENGTH}] -= k
            if tree[x, {LEVEL}] > 0:
                gone = {NONE}
                for i in range(k):
                    tree[tree[x, {CHILD} + i], {NEXT}] = gone
                    gone = tree[x, {CHILD} + i]
                <release>
            if k > 0:
                size = tree[x, {SIZE}] - k
                tree[x, {SIZE}] = size
                tree[x, {CHILD}] = tree[x, {CHILD} + k]
                for i in range(size):
                    tree[x, {TIME} + i] = tree[x, {TIME} + i + k]
                    tree[x, {CHILD + 1} + i] = tree[x, {CHILD + 1} + i + k]
                    e = {entry(shape, "x", "i + k")}
                    {put(shape, "x", "i", "e")}
            tree[x, {SPINE}] |= {LEFT}
            if tree[x, {LEVEL}] == 0:
                break
            c = tree[x, {CHILD}]
            if x == m[{ROOT}] and tree[x, {SIZE}] == 0:
                tree[c, {PARENT}] = {NONE}
                tree[c, {SPINE}] = {BOTH}
                m[{ROOT}] = c
                y = x
                <free>
            x = c
        """,
        release=_release(shape),
        free=_free(shape),
    )


def _release(shape: Shape) -> str:
    """Free a chain of nodes that begins with `gone`, and all below them."""
    return weave(
        f"""
        while gone >= 0:
            y = gone
            gone = tree[y, {NEXT}]
            if tree[y, {LEVEL}] > 0:
                for i in range(tree[y, {SIZE}] + 1):
                    tree[tree[y, {CHILD} + i], {NEXT}] = gone
                    gone = tree[y, {CHILD} + i]
            m[{LENGTH}] -= tree[y, {SIZE}]
            <free>
        """,
        free=_free(shape),
    )


def _free(shape: Shape) -> str:
    """Free the node y. Objects must not live on in it."""
    of_objects = any(c.dtype == "object" for c in shape.components)
    clear = f"for i in range({SLOTS}): {put(shape, 'y', 'i', 'identity')}"
    return weave(
        f"""
        m[{NODES}] -= 1
        tree[y, {NEXT}] = m[{FREE}]
        m[{FREE}] = y
        {clear if of_objects else ""}
        """
    )


def pour(shape: Shape) -> str:
    """Insert a batch: `times`, which do not decrease, and columns x0, x1, ... of partials.

    A *rider* is an entry on its way into a node, with the child that follows it there. Riders of
    one level are at `base ...`, those they make for the level above at `other ...`.
    """
    return weave(
        f"""
        n = len(times)
        target = np.empty(2 * n, np.int64)
        time = np.empty(2 * n, np.int64)
        follow = np.empty(2 * n, np.int64)
        {shape.like("w", "a", "2 * n")}
        own_time = np.empty({MOST}, np.int64)
        own_follow = np.empty({MOST}, np.int64)
        {shape.like("o", "a", str(MOST))}
        <places>
        base = 0
        while count > 0:
            other = n - base
            made = 0
            begin = 0
            while begin < count:
                x = target[base + begin]
                end = begin + 1
                while end < count and target[base + end] == x:
                    end += 1
                <spread>
                begin = end
            count = made
            base = other
        grown = False
        <repair>
        """,
        places=_places(shape),
        spread=_spread(shape),
        repair=repair(shape),
    )


def _places(shape: Shape) -> str:
    """Find the place of each time from that of the one before; make riders for leaves."""
    return weave(
        f"""
        count = 0
        i = 0
        while i < n:
            t = times[i]
            p = {shape.load("x", "i")}
            if i == 0:
                <near>
            else:
                # Up from the last place, until t must be below.
                while tree[x, {SPINE}] & {RIGHT} == 0:
                    q = tree[x, {PARENT}]
                    j = 0
                    while tree[q, {CHILD} + j] != x:
                        j += 1
                    if j < tree[q, {SIZE}] and t < tree[q, {TIME} + j]:
                        break
                    x = q
            i += 1
            while i < n and times[i] == t:
                p = combine(p, {shape.load("x", "i")})
                i += 1
            <down>
            if {holds("x", "k")}:
                p = combine({entry(shape, "x", "k")}, p)
                {put(shape, "x", "k", "p")}
                <touch>
            else:
                target[count] = x
                time[count] = t
                follow[count] = {NONE}
                {shape.store("w", "count", "p")}
                count += 1
        m[{LENGTH}] += count
        """,
        near=near(),
        down=down(),
        touch=touch("x"),
    )


def _spread(shape: Shape) -> str:
    """Put riders begin ... end into the node x, and share it out over the fewest nodes z."""
    return weave(
        f"""
        level = tree[x, {LEVEL}]
        spine = tree[x, {SPINE}]
        size = tree[x, {SIZE}]
        for i in range(size):
            own_time[i] = tree[x, {TIME} + i]
            own_follow[i] = tree[x, {CHILD + 1} + i]
            p = {entry(shape, "x", "i")}
            {shape.store("o", "i", "p")}
        arity = size + end - begin + 1
        nodes = (arity + {MOST - 1}) // {MOST}
        if nodes > 1 and x == m[{ROOT}]:
            <above>
        z = x
        <touch>
        done = 0
        filled = 0
        full = (arity + nodes - 1) // nodes - 1
        i = 0
        j = begin
        while i < size or j < end:
            if j == end or (i < size and own_time[i] < time[base + j]):
                t = own_time[i]
                c = own_follow[i]
                p = {shape.load("o", "i")}
                i += 1
            else:
                t = time[base + j]
                c = follow[base + j]
                p = {shape.load("w", "base + j")}
                j += 1
            if filled < full:
                tree[z, {TIME} + filled] = t
                {put(shape, "z", "filled", "p")}
                filled += 1
            else:
                tree[z, {SIZE}] = filled
                <new>
                <touch>
                target[other + made] = tree[x, {PARENT}]
                time[other + made] = t
                follow[other + made] = z
                {shape.store("w", "other + made", "p")}
                made += 1
                done += 1
                filled = 0
                full = (arity + nodes - 1 - done) // nodes - 1
            if level > 0:
                tree[z, {CHILD} + filled] = c
                tree[c, {PARENT}] = z
        tree[z, {SIZE}] = filled
        tree[x, {SPINE}] = spine & {LEFT}
        tree[z, {SPINE}] |= spine & {RIGHT}
        if level == 0 and spine & {RIGHT}:
            m[{NEWEST}] = z
        """,
        above=above("x"),
        touch=touch("z"),
        new=new("z", "level", "0"),
    )
