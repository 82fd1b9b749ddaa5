"""What lets merging run at the speed of the machine: its vectors, caches, memory and threads."""
