"""Everything in one thread: windows from slices, from sessions, and from events."""
