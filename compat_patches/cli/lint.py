"""`compat-patches lint`: say where torch.cuda is used that has a device-neutral form."""

from __future__ import annotations

from pathlib import Path

import click

FORMATS = ("text", "concise", "json", "github", "sarif")


def version_option(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Read the value of --min-torch."""
    if value is None:
        return None
    from compat_patches.lint.table import parse_version

    try:
        return parse_version(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("lint", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--min-torch", callback=version_option, metavar="VERSION", help="The oldest torch that the code has to run with, as in 2.10: nothing newer is suggested. Default: what the configuration or the project's own requirements say.")  # fmt: skip
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="Read this pyproject.toml or setup.cfg instead of the nearest one.")  # fmt: skip
@click.option("--table", "tables", multiple=True, type=click.Path(dir_okay=False, path_type=Path), help="A file of further migrations; may be given again.")  # fmt: skip
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True, help="How findings are written.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--baseline", type=click.Path(dir_okay=False, path_type=Path), help="Leave out the findings in this file.")  # fmt: skip
@click.option("--write-baseline", type=click.Path(dir_okay=False, path_type=Path), help="Write the findings to this file instead of showing them.")  # fmt: skip
@click.option("--notes/--no-notes", default=True, help="Show what is worth knowing and no finding.")
@click.option("--all", "everything", is_flag=True, help="Show the uses that have no device-neutral form as well.")  # fmt: skip
@click.option("--verdicts", is_flag=True, help="Say for each finding whether `fix` would rewrite it, or why not. Takes longer.")  # fmt: skip
@click.option("--statistics", is_flag=True, help="Count the findings by name instead of showing them.")
def lint(
    paths: tuple[Path, ...],
    min_torch: tuple[int, int] | None,
    config: Path | None,
    tables: tuple[Path, ...],
    output_format: str,
    as_json: bool,
    baseline: Path | None,
    write_baseline: Path | None,
    notes: bool,
    everything: bool,
    verdicts: bool,
    statistics: bool,
) -> None:
    """Find torch.cuda API that has a device-neutral form under PATHS.

    Exit code 0: nothing to say. 1: findings. 2: the call or the configuration is wrong.
    """
    from compat_patches.cli import _lint_terminal as terminal
    from compat_patches.lint import baseline as baselines
    from compat_patches.lint import output, running
    from compat_patches.lint.errors import LintError

    options = running.Options(paths, min_torch, config, tables, baseline, everything, notes)
    try:
        with terminal.Progress() as progress:
            report = running.run(options, progress)
            if verdicts:
                from compat_patches.lint.fixing import add_verdicts

                add_verdicts(report, progress)
        if write_baseline is not None:
            found = [(checked.source, checked.findings) for checked in report.checked]
            count = baselines.write(write_baseline, found)
            click.echo(f"{write_baseline}: {count} findings", err=True)
            terminal.report_problems(report.problems)
            return
    except LintError as error:
        raise terminal.Misuse(str(error)) from error
    chosen = "json" if as_json else output_format
    if statistics and chosen in ("text", "concise"):
        terminal.table(("count", "level", "rule", "name"), output.statistics(report))
    else:
        writers = {
            "text": lambda: output.text(report, terminal.style),
            "concise": lambda: output.concise(report, terminal.style),
            "json": lambda: output.as_json(report),
            "github": lambda: output.github(report),
            "sarif": lambda: output.sarif(report),
        }
        for line in writers[chosen]():
            click.echo(line)
    terminal.report_problems(report.problems)
    if chosen in ("text", "concise"):
        click.echo(output.summary(report), err=True)
    raise SystemExit(1 if report.failed else 0)
