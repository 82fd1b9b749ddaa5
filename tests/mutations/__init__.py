"""Small breaks of the library, to see that the tests notice them: `python -m tests.mutations`."""
