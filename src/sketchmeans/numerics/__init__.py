"""Linear algebra with every tolerance, sums, threads, memory, files, parameters."""
