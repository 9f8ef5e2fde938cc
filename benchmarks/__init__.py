"""The budgets, measured: `python -m benchmarks`. Each prints a ratio beside its budget; no test asserts a time."""
