"""From events to slices, by columns: keys, total order, window bounds, folding."""
