"""Many entries of a FiBA tree at once, as text: evict all up to a time, insert a sorted batch.

Tangwongsan, Hirzel, Schneider, "Out-of-Order Sliding-Window Aggregation with Efficient Bulk
Evictions and Insertions", VLDB 2023. An eviction cuts along one path; a batch is spread over the
leaves, and what does not fit there over the nodes above, one level after the other. Either way
each aggregate is computed once, after the shape is settled.
"""

from __future__ import annotations

from paneflow.aggregates.kernels import Shape
from paneflow.merging._fiba_tree import (
    AGGREGATE,
    BOTH,
    CHILD,
    LEFT,
    LENGTH,
    LEVEL,
    MOST,
    NEWEST,
    NONE,
    OLDEST,
    PARENT,
    RIGHT,
    ROOT,
    SIZE,
    SPINE,
    TIME,
    entry,
    state,
    store,
)


def cut_text(shape: Shape) -> str:
    """Entries leave only at the left, so only the left spine ever gets thin.

    A node there may lose all entries and keep one child, unless it is the root or a leaf. A root
    without entries gives way to its child. A leaf without entries goes, with the bare nodes above
    it; the first entry of the node that then has no first child moves down to the next leaf.
    """
    return f"""
        @helper
        def tree_drop({state(shape)}, x, n):
            # The first n entries of a node, and the children before them.
            size = tree[x, {SIZE}]
            if tree[x, {LEVEL}] > 0:
                for i in range(n):
                    tree_release({state(shape)}, tree[x, {CHILD} + i], True)
                for i in range(n, size + 1):
                    tree[x, {CHILD} + i - n] = tree[x, {CHILD} + i]
            for i in range(n, size):
                tree[x, {TIME} + i - n] = tree[x, {TIME} + i]
                e = {entry(shape, "x", "i")}
                {store(shape, "x", "i - n", "e")}
            tree[x, {SIZE}] = size - n
            m[{LENGTH}] -= n


        @helper
        def tree_lower({state(shape)}):
            # The root has one child and no entry: the child is the root.
            x = m[{ROOT}]
            c = tree[x, {CHILD}]
            tree[c, {PARENT}] = {NONE}
            tree[c, {SPINE}] = {BOTH}
            m[{ROOT}] = c
            tree_release({state(shape)}, x, False)


        @helper
        def tree_refill({state(shape)}, x):
            # x is a leaf without entries. Gives the node whose first entry moved down.
            q = tree[x, {PARENT}]
            while tree[q, {SIZE}] == 0:
                q = tree[q, {PARENT}]
            y = tree[q, {CHILD + 1}]
            tree[y, {SPINE}] |= {LEFT}
            while tree[y, {LEVEL}] > 0:
                y = tree[y, {CHILD}]
                tree[y, {SPINE}] |= {LEFT}
            m[{OLDEST}] = y
            tree_room({state(shape)}, y, 0)
            tree[y, {TIME}] = tree[q, {TIME}]
            e = {entry(shape, "q", "0")}
            {store(shape, "y", "0", "e")}
            m[{LENGTH}] += 1
            tree_drop({state(shape)}, q, 1)
            return q


        @helper
        def tree_cut({state(shape)}, t):
            x = m[{OLDEST}]
            n = tree[x, {SIZE}]
            if n == 0 or t < tree[x, {TIME}]:
                return
            if t < tree[x, {TIME - 1} + n]:
                k = 1
                while tree[x, {TIME} + k] <= t:
                    k += 1
                tree_drop({state(shape)}, x, k)
                r = tree_worth({state(shape)}, x)
                {store(shape, "x", str(AGGREGATE), "r")}
                return
            # The highest node that loses an entry.
            y = x
            while y != m[{ROOT}]:
                y = tree[y, {PARENT}]
                if tree[y, {SIZE}] > 0:
                    if tree[y, {TIME}] > t:
                        break
                    x = y
            high = tree[x, {LEVEL}]
            root = m[{ROOT}]
            while True:
                k = 0
                while k < tree[x, {SIZE}] and tree[x, {TIME} + k] <= t:
                    k += 1
                tree_drop({state(shape)}, x, k)
                tree[x, {SPINE}] |= {LEFT}
                if tree[x, {LEVEL}] == 0:
                    break
                y = tree[x, {CHILD}]
                if x == m[{ROOT}] and tree[x, {SIZE}] == 0:
                    tree_lower({state(shape)})
                x = y
            m[{OLDEST}] = x
            if tree[x, {SIZE}] == 0 and x != m[{ROOT}]:
                q = tree_refill({state(shape)}, x)
                high = max(high, tree[q, {LEVEL}])
                if q == m[{ROOT}] and tree[q, {SIZE}] == 0:
                    tree_lower({state(shape)})
            if root != m[{ROOT}] and tree[m[{ROOT}], {LEVEL}] > 0:
                # The right spine begins anew below the new root.
                tree_touch(m, tree, tree[m[{ROOT}], {CHILD} + tree[m[{ROOT}], {SIZE}]])
            x = m[{OLDEST}]
            while x != m[{ROOT}] and tree[x, {LEVEL}] < high:
                tree_touch(m, tree, x)
                x = tree[x, {PARENT}]
            tree_touch(m, tree, x)
            tree_settle({state(shape)}, m[{OLDEST}])
            tree_repair({state(shape)})
        """


def pour_text(shape: Shape) -> str:
    """`tree_pour`: a batch in order of time.

    A *rider* is an entry on its way into a node, with the child that follows it there. Riders of
    one level are at `base ...`, those they make for the level above at `other ...`.
    """
    whole = state(shape)
    return f"""
        @helper
        def tree_onward(tree, x, t):
            # Up from the place of an earlier time, until a subtree must hold t.
            while tree[x, {SPINE}] & {RIGHT} == 0:
                q = tree[x, {PARENT}]
                k = 0
                while tree[q, {CHILD} + k] != x:
                    k += 1
                if k < tree[q, {SIZE}] and t < tree[q, {TIME} + k]:
                    break
                x = q
            return x


        @helper
        def tree_pour({whole}, times, {shape.names("x")}):
            n = len(times)
            target = np.empty(2 * n, np.int64)
            time = np.empty(2 * n, np.int64)
            right = np.empty(2 * n, np.int64)
            {shape.like("w", "a", "2 * n")}
            own_time = np.empty({MOST}, np.int64)
            own_right = np.empty({MOST}, np.int64)
            {shape.like("o", "a", str(MOST))}

            # Where each goes: into an entry of the same time, or into a leaf.
            count = 0
            x = {NONE}
            k = 0
            while k < n:
                t = times[k]
                p = {shape.load("x", "k")}
                k += 1
                while k < n and times[k] == t:
                    p = combine(p, {shape.load("x", "k")})
                    k += 1
                x = tree_near(m, tree, t) if x < 0 else tree_onward(tree, x, t)
                x, i = tree_down(tree, x, t)
                if tree_holds(tree, x, i, t):
                    p = combine({entry(shape, "x", "i")}, p)
                    {store(shape, "x", "i", "p")}
                    tree_touch(m, tree, x)
                else:
                    target[count] = x
                    time[count] = t
                    right[count] = {NONE}
                    {shape.store("w", "count", "p")}
                    count += 1
            m[{LENGTH}] += count

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
                    level = tree[x, {LEVEL}]
                    size = tree[x, {SIZE}]
                    for i in range(size):
                        own_time[i] = tree[x, {TIME} + i]
                        own_right[i] = tree[x, {CHILD} + 1 + i]
                        p = {entry(shape, "x", "i")}
                        {shape.store("o", "i", "p")}
                    # Children are shared out evenly over the fewest nodes.
                    arity = size + end - begin + 1
                    nodes = (arity + {MOST - 1}) // {MOST}
                    if nodes > 1 and x == m[{ROOT}]:
                        tree_above(m, tree, x)
                    spine = tree[x, {SPINE}]
                    z = x
                    tree_touch(m, tree, z)
                    full = arity // nodes - 1 + (1 if arity % nodes > 0 else 0)
                    done = 1
                    size_z = 0
                    i = 0
                    j = begin
                    while i < size or j < end:
                        if j == end or (i < size and own_time[i] < time[base + j]):
                            t = own_time[i]
                            c = own_right[i]
                            p = {shape.load("o", "i")}
                            i += 1
                        else:
                            t = time[base + j]
                            c = right[base + j]
                            p = {shape.load("w", "base + j")}
                            j += 1
                        if size_z == full:
                            tree[z, {SIZE}] = size_z
                            z = tree_new(m, tree, level, 0)
                            tree_touch(m, tree, z)
                            full = arity // nodes - 1 + (1 if done < arity % nodes else 0)
                            done += 1
                            size_z = 0
                            target[other + made] = tree[x, {PARENT}]
                            time[other + made] = t
                            right[other + made] = z
                            {shape.store("w", "other + made", "p")}
                            made += 1
                        else:
                            tree[z, {TIME} + size_z] = t
                            {store(shape, "z", "size_z", "p")}
                            size_z += 1
                        if level > 0:
                            tree[z, {CHILD} + size_z] = c
                            tree[c, {PARENT}] = z
                    tree[z, {SIZE}] = size_z
                    tree[x, {SPINE}] = spine & {LEFT}
                    tree[z, {SPINE}] |= spine & {RIGHT}
                    if level == 0 and spine & {RIGHT}:
                        m[{NEWEST}] = z
                    begin = end
                count = made
                base = other
            tree_repair({whole})
        """
