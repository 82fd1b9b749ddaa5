"""Where the rows of the root go: to the terminal, to files, to a function, or on to Spark."""
