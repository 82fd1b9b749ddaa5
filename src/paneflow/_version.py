"""The version, where everything can read it: compiled kernels of another one are not used."""

__version__ = "0.1.0"
