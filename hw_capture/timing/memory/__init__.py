"""Memory: pointer chases by size, stores, atomics and copies in chains, and the bandwidth of each level."""
