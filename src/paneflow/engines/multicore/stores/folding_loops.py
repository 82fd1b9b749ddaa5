"""Generated loops that fold events, or partials, into the cells they belong to.

Places are unsigned where much depends on it: one that may be negative could count from the end,
which takes two steps more to find out.
"""

from paneflow.aggregates.kernels import Shape


def absorb_loop(shape: Shape) -> str:
    """A loop that adds an event to a cell, for each pair in order."""
    return f"""
        def absorb_all(cells, which, present, {shape.value_names()}, {shape.names("o")}):
            for j in range(len(cells)):
                i = np.uint64(which[j])
                if len(present) == 0 or present[i]:
                    c = np.uint64(cells[j])
                    p = absorb({shape.load("o", "c")}, {shape.values("i")})
                    {shape.store("o", "c", "p")}
        """


def absorb_runs_loop(shape: Shape) -> str:
    """A loop that adds each run of events to its cell: the same steps, and the same bits.

    What a run amounts to stays in registers.
    """
    return f"""
        def absorb_runs(cells, starts, present, {shape.value_names()}, {shape.names("o")}):
            for r in range(len(cells)):
                c = np.uint64(cells[r])
                p = {shape.load("o", "c")}
                for i in range(starts[r], starts[r + 1]):
                    if len(present) == 0 or present[i]:
                        p = absorb(p, {shape.values("i")})
                {shape.store("o", "c", "p")}
        """


def absorb_each_loop(shape: Shape) -> str:
    """A loop that adds every event to its cell, in order."""
    return f"""
        def absorb_each(cells, present, {shape.value_names()}, {shape.names("o")}):
            for i in range(len(cells)):
                if len(present) == 0 or present[i]:
                    c = cells[i]
                    p = absorb({shape.load("o", "c")}, {shape.values("i")})
                    {shape.store("o", "c", "p")}
        """


def combine_each_loop(shape: Shape) -> str:
    """A loop that merges every partial into its cell, in order."""
    return f"""
        def combine_each(cells, {shape.names("s")}, {shape.names("o")}):
            for i in range(len(cells)):
                c = cells[i]
                p = {shape.load("o", "c")}
                q = {shape.load("s", "i")}
                {shape.merge_at("o", "c", "p", "q")}
        """


def combine_loop(shape: Shape) -> str:
    """A loop that merges a pane into a cell, for each pair in order."""
    return f"""
        def combine_all(cells, which, {shape.names("s")}, {shape.names("o")}):
            for j in range(len(cells)):
                i = which[j]
                c = cells[j]
                p = {shape.load("o", "c")}
                q = {shape.load("s", "i")}
                {shape.merge_at("o", "c", "p", "q")}
        """
