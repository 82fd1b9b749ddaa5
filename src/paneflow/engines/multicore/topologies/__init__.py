"""Processing units (PUs) in lines and rings, which aggregate without a coordinator.

They follow the master's thesis "Disjoint Parallelization of Sliding-Window Streaming Aggregation"
(Chalmers University of Technology), chapters 5 to 9: *the thesis* in this room.
"""
