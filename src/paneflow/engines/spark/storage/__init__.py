"""Where streams keep files: this machine's disk, or any file system that Spark has."""
