"""Many runs: the plan of a sweep, the paper's rows, results, their comparison and tables."""
