"""Products of matrices of sizes that only a run tells, and those that the BLAS computes on several threads."""
