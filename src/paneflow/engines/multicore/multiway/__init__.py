"""Many input streams, merged and aggregated by several threads through shared objects."""
