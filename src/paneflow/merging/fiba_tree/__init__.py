"""The tree of FiBA as text for kernels: its layout, changes of many entries, and its invariants."""
