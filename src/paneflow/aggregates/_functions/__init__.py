"""Users' functions: their source, what they compute, what they return, and whose they are.

`sources.py` reads a function's text, in which `checking.py` puts the operations of
`arithmetic.py`: kernels are made of that text. `roles.py` says which aggregate a function belongs
to when it fails, `results.py` turns what it returned into Arrow arrays, and `identity.py` tells
functions apart, for slices and checkpoints.
"""
