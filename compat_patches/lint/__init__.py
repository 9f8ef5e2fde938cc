"""Find uses of torch.cuda that have a device-neutral form, and rewrite those that can be rewritten safely.

What is to be found is data (`migrations.toml`, `table`). ruff resolves names to what they mean (`resolving`),
and `analysis` sees to what ruff does not follow. `checking` puts both together into findings, `safety`
decides which of them may be rewritten, and `rewriting` does it. Only the commands `lint` and `fix` import any
of this.
"""
