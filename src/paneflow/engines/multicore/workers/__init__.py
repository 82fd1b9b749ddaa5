"""Workers that are dealt whole windows: active ones keep their own, agnostic ones are handed them.

Mencagli et al., "Harnessing Sliding-Window Execution Semantics for Parallel Stream Processing",
sections 3 and 4.
"""
