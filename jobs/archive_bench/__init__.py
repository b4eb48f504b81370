"""What the archive job's benchmarks share: generated documents, a cluster to break, and a check of what is left."""
