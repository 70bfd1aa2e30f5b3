"""Training that survives failures: launcher, membership, data, recovery."""
