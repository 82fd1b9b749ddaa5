"""From slices to windows: algorithms that merge partials, one per file.

Every algorithm holds the partials of one operator over a row of slices, and answers for windows
that are ranges of those slices (`contract.py`).
"""
