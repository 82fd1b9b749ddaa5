"""The tree of FiBA as text: nodes, search, insert, repair of aggregates, query.

Every node is one row of the integer table `tree` and `SLOTS` partials of the store `a`: its
entries, and behind them its aggregate. Which part of the tree an aggregate covers depends on
where the node stands (`tree_worth`), so that a change near the newest or the oldest entry leaves
all but a few aggregates as they are.

Operations change the shape first and `touch` the nodes they changed; `tree_repair` then brings
the aggregates up to date, level by level. Names begin with `tree_`, since a user's functions are
pasted into the same text.
"""

from __future__ import annotations

from paneflow.aggregates.kernels import Shape

MU = 4
"""The least number of children; twice as many are the most. Chosen by measurement."""
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


def text(shape: Shape) -> str:
    """All functions that FiBA consists of, except those for many entries at once."""
    return _nodes(shape) + _search() + _repair(shape) + _insert(shape) + _queries(shape)


def entry(shape: Shape, node: str, i: str) -> str:
    """The partial of an entry, or of the aggregate, of a node."""
    return shape.load("a", f"{node} * {SLOTS} + {i}")


def store(shape: Shape, node: str, i: str, partial: str) -> str:
    """Statements that write one."""
    return shape.store("a", f"{node} * {SLOTS} + {i}", partial)


def aggregate(shape: Shape, node: str) -> str:
    """The aggregate of a node."""
    return entry(shape, node, str(AGGREGATE))


def _nodes(shape: Shape) -> str:
    """Nodes come and go: a free list, room for an entry, the split of one that is too full."""
    of_objects = any(c.dtype == "object" for c in shape.components)
    forget = store(shape, "y", "i", "identity") if of_objects else "pass"
    return f"""
        @helper
        def tree_new(m, tree, level, spine):
            x = m[{FREE}]
            if x >= 0:
                m[{FREE}] = tree[x, {NEXT}]
            else:
                x = m[{USED}]
                m[{USED}] += 1
            m[{NODES}] += 1
            tree[x, {PARENT}] = {NONE}
            tree[x, {SIZE}] = 0
            tree[x, {LEVEL}] = level
            tree[x, {SPINE}] = spine
            tree[x, {NEXT}] = {UNTOUCHED}
            return x


        @helper
        def tree_release({state(shape)}, x, below):
            # Frees a node, and all below it if asked to. Objects must not live on in free nodes.
            tree[x, {NEXT}] = {NONE}
            while x >= 0:
                y = x
                x = tree[y, {NEXT}]
                if below and tree[y, {LEVEL}] > 0:
                    for i in range(tree[y, {SIZE}] + 1):
                        c = tree[y, {CHILD} + i]
                        tree[c, {NEXT}] = x
                        x = c
                m[{LENGTH}] -= tree[y, {SIZE}]
                m[{NODES}] -= 1
                tree[y, {NEXT}] = m[{FREE}]
                m[{FREE}] = y
                for i in range({SLOTS}):
                    {forget}


        @helper
        def tree_touch(m, tree, x):
            if tree[x, {NEXT}] == {UNTOUCHED}:
                level = tree[x, {LEVEL}]
                tree[x, {NEXT}] = m[{CHAINS} + level]
                m[{CHAINS} + level] = x
                m[{TOP}] = max(m[{TOP}], level)


        @helper
        def tree_room({state(shape)}, x, k):
            # Entries from k on, and the children behind them, move one place to the right.
            n = tree[x, {SIZE}]
            for i in range(n, k, -1):
                tree[x, {TIME} + i] = tree[x, {TIME} + i - 1]
                e = {entry(shape, "x", "i - 1")}
                {store(shape, "x", "i", "e")}
            if tree[x, {LEVEL}] > 0:
                for i in range(n + 1, k + 1, -1):
                    tree[x, {CHILD} + i] = tree[x, {CHILD} + i - 1]
            tree[x, {SIZE}] = n + 1


        @helper
        def tree_above(m, tree, x):
            # A new root above the old one.
            r = tree_new(m, tree, tree[x, {LEVEL}] + 1, {BOTH})
            tree[r, {CHILD}] = x
            tree[x, {PARENT}] = r
            m[{ROOT}] = r


        @helper
        def tree_split({state(shape)}, x):
            # The right part becomes a node of its own, the entry between goes to the parent.
            if x == m[{ROOT}]:
                tree_above(m, tree, x)
            level = tree[x, {LEVEL}]
            y = tree_new(m, tree, level, tree[x, {SPINE}] & {RIGHT})
            tree[x, {SPINE}] &= {LEFT}
            if level == 0 and tree[y, {SPINE}] != 0:
                m[{NEWEST}] = y
            for i in range({MU + 1}, {MOST}):
                tree[y, {TIME} + i - {MU + 1}] = tree[x, {TIME} + i]
                e = {entry(shape, "x", "i")}
                {store(shape, "y", f"i - {MU + 1}", "e")}
            if level > 0:
                for i in range({MU + 1}, {MOST + 1}):
                    c = tree[x, {CHILD} + i]
                    tree[y, {CHILD} + i - {MU + 1}] = c
                    tree[c, {PARENT}] = y
            tree[x, {SIZE}] = {MU}
            tree[y, {SIZE}] = {MU - 1}
            q = tree[x, {PARENT}]
            k = 0
            while tree[q, {CHILD} + k] != x:
                k += 1
            tree_room({state(shape)}, q, k)
            tree[q, {TIME} + k] = tree[x, {TIME + MU}]
            e = {entry(shape, "x", str(MU))}
            {store(shape, "q", "k", "e")}
            tree[q, {CHILD} + k + 1] = y
            tree[y, {PARENT}] = q
            return y


        @helper
        def tree_settle({state(shape)}, x):
            # Splits as long as something is too full; touches what changed.
            while tree[x, {SIZE}] == {MOST}:
                y = tree_split({state(shape)}, x)
                tree_touch(m, tree, x)
                tree_touch(m, tree, y)
                x = tree[x, {PARENT}]
            tree_touch(m, tree, x)
        """


def _search() -> str:
    """Finger search: up from both ends, until a subtree must hold the time, then down."""
    return f"""
        @helper
        def tree_near(m, tree, t):
            x = m[{NEWEST}]
            y = m[{OLDEST}]
            while x != m[{ROOT}]:
                q = tree[x, {PARENT}]
                if t > tree[q, {TIME - 1} + tree[q, {SIZE}]]:
                    return x
                x = q
                q = tree[y, {PARENT}]
                if tree[q, {SIZE}] > 0 and t < tree[q, {TIME}]:
                    return y
                y = q
            return x


        @helper
        def tree_down(tree, x, t):
            # The node and place where t is, or in a leaf the place where it would be.
            while True:
                n = tree[x, {SIZE}]
                k = 0
                while k < n and tree[x, {TIME} + k] < t:
                    k += 1
                if tree[x, {LEVEL}] == 0 or (k < n and tree[x, {TIME} + k] == t):
                    return x, k
                x = tree[x, {CHILD} + k]


        @helper
        def tree_holds(tree, x, k, t):
            return k < tree[x, {SIZE}] and tree[x, {TIME} + k] == t
        """


def _repair(shape: Shape) -> str:
    """What a node's aggregate is, and how all touched ones become right."""
    child = aggregate(shape, f"tree[x, {CHILD} + i]")
    return f"""
        @helper
        def tree_worth({state(shape)}, x):
            # Inner nodes: all below. Left spine: all but the first child, then the parent's.
            # Right spine: the parent's, then all but the last child. Root: without both. What
            # is in the root is in no other aggregate.
            n = tree[x, {SIZE}]
            inside = tree[x, {LEVEL}] > 0
            spine = tree[x, {SPINE}]
            q = tree[x, {PARENT}]
            onward = (spine == {LEFT} or spine == {RIGHT}) and q != m[{ROOT}]
            if n == 0:
                if onward:
                    return {aggregate(shape, "q")}
                return identity
            r = {entry(shape, "x", "0")}
            if inside and spine & {LEFT} == 0:
                i = 0
                r = {child}
                if spine == {RIGHT} and onward:
                    r = combine({aggregate(shape, "q")}, r)
                r = combine(r, {entry(shape, "x", "0")})
            elif spine == {RIGHT} and onward:
                r = combine({aggregate(shape, "q")}, r)
            for i in range(1, n):
                if inside:
                    r = combine(r, {child})
                r = combine(r, {entry(shape, "x", "i")})
            if inside and spine & {RIGHT} == 0:
                i = n
                r = combine(r, {child})
            if spine == {LEFT} and onward:
                r = combine(r, {aggregate(shape, "q")})
            return r


        @helper
        def tree_repair({state(shape)}):
            # Upwards from inner nodes to their parents, then down each spine.
            left = {NONE}
            right = {NONE}
            level = 0
            while level <= m[{TOP}]:
                x = m[{CHAINS} + level]
                m[{CHAINS} + level] = {NONE}
                while x >= 0:
                    y = tree[x, {NEXT}]
                    tree[x, {NEXT}] = {UNTOUCHED}
                    spine = tree[x, {SPINE}]
                    if spine == {LEFT}:
                        left = x
                    elif spine == {RIGHT}:
                        right = x
                    else:
                        r = tree_worth({state(shape)}, x)
                        {store(shape, "x", str(AGGREGATE), "r")}
                        if spine == 0:
                            tree_touch(m, tree, tree[x, {PARENT}])
                    x = y
                level += 1
            m[{TOP}] = {NONE}
            while left >= 0:
                r = tree_worth({state(shape)}, left)
                {store(shape, "left", str(AGGREGATE), "r")}
                left = tree[left, {CHILD}] if tree[left, {LEVEL}] > 0 else {NONE}
            while right >= 0:
                r = tree_worth({state(shape)}, right)
                {store(shape, "right", str(AGGREGATE), "r")}
                n = tree[right, {SIZE}]
                right = tree[right, {CHILD} + n] if tree[right, {LEVEL}] > 0 else {NONE}
        """


def _insert(shape: Shape) -> str:
    """One entry, at its time."""
    return f"""
        @helper
        def tree_append({state(shape)}, t, p):
            # The newest: aggregates on the right spine grow at their end, so one combine does,
            # and two for each node that is split off.
            x = m[{NEWEST}]
            n = tree[x, {SIZE}]
            r = p
            if n > 0:
                r = combine({aggregate(shape, "x")}, p)
            {store(shape, "x", str(AGGREGATE), "r")}
            tree[x, {TIME} + n] = t
            {store(shape, "x", "n", "p")}
            tree[x, {SIZE}] = n + 1
            m[{LENGTH}] += 1
            if n + 1 < {MOST}:
                return
            while tree[x, {SIZE}] == {MOST} and x != m[{ROOT}]:
                y = tree_split({state(shape)}, x)
                tree_touch(m, tree, y)
                r = tree_worth({state(shape)}, x)
                {store(shape, "x", str(AGGREGATE), "r")}
                q = tree[x, {PARENT}]
                r = combine({aggregate(shape, "q")}, r)
                k = tree[q, {SIZE}] - 1
                r = combine(r, {entry(shape, "q", "k")})
                {store(shape, "q", str(AGGREGATE), "r")}
                x = q
            if tree[x, {SIZE}] == {MOST}:
                tree_settle({state(shape)}, x)
            tree_repair({state(shape)})


        @helper
        def tree_insert({state(shape)}, t, p):
            x = m[{NEWEST}]
            n = tree[x, {SIZE}]
            if n == 0 or t > tree[x, {TIME - 1} + n]:
                tree_append({state(shape)}, t, p)
                return
            x, k = tree_down(tree, tree_near(m, tree, t), t)
            if tree_holds(tree, x, k, t):
                r = combine({entry(shape, "x", "k")}, p)
                {store(shape, "x", "k", "r")}
            else:
                tree_room({state(shape)}, x, k)
                tree[x, {TIME} + k] = t
                {store(shape, "x", "k", "p")}
                m[{LENGTH}] += 1
            tree_settle({state(shape)}, x)
            tree_repair({state(shape)})
        """


def _queries(shape: Shape) -> str:
    """The whole window, and a part of it."""
    child = aggregate(shape, f"tree[x, {CHILD} + i]")
    return f"""
        @helper
        def tree_query({state(shape)}):
            x = m[{ROOT}]
            if tree[x, {LEVEL}] == 0:
                return {shape.fresh(aggregate(shape, "x"))}
            r = combine({aggregate(shape, f"m[{OLDEST}]")}, {aggregate(shape, "x")})
            return combine(r, {aggregate(shape, f"m[{NEWEST}]")})


        @helper
        def tree_first(tree, x, t):
            # How many entries of a node are before t.
            k = 0
            while k < tree[x, {SIZE}] and tree[x, {TIME} + k] < t:
                k += 1
            return k


        @helper
        def tree_range({state(shape)}, since, until):
            # Down to the node that the range cuts in two; from there down both edges of it. What
            # lies between the edges is on no spine, and so known by its aggregates.
            x = m[{ROOT}]
            lo = tree_first(tree, x, since)
            hi = tree_first(tree, x, until)
            while lo >= hi:
                if tree[x, {LEVEL}] == 0:
                    return {shape.fresh("identity")}
                x = tree[x, {CHILD} + lo]
                lo = tree_first(tree, x, since)
                hi = tree_first(tree, x, until)
            top = x
            r = {entry(shape, "x", "lo")}
            for i in range(lo + 1, hi):
                if tree[x, {LEVEL}] > 0:
                    r = combine(r, {child})
                r = combine(r, {entry(shape, "x", "i")})
            while tree[x, {LEVEL}] > 0:
                x = tree[x, {CHILD} + lo]
                lo = tree_first(tree, x, since)
                for i in range(tree[x, {SIZE}], lo, -1):
                    if tree[x, {LEVEL}] > 0:
                        r = combine({child}, r)
                    r = combine({entry(shape, "x", "i - 1")}, r)
            x = top
            while tree[x, {LEVEL}] > 0:
                x = tree[x, {CHILD} + hi]
                hi = tree_first(tree, x, until)
                for i in range(hi):
                    if tree[x, {LEVEL}] > 0:
                        r = combine(r, {child})
                    r = combine(r, {entry(shape, "x", "i")})
            return {shape.fresh("r")}
        """
