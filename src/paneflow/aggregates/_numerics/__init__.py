"""The arithmetic behind the built-in aggregates: sums, deviations, hashes, sketches, decimals."""
