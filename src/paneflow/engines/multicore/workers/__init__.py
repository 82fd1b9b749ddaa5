"""Workers for whole windows: active workers keep their own, agnostic workers are handed them.

Mencagli et al., "Harnessing Sliding-Window Execution Semantics for Parallel Stream Processing",
sections 3 and 4.
"""
