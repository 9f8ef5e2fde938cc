"""`compat-patches lint`: say where torch.cuda is used that has a device-neutral form."""

from __future__ import annotations

from pathlib import Path

import click

from compat_patches.cli._lint_options import FILE, SETTINGS, shared_options

FORMATS = ("text", "concise", "json", "github", "sarif")


@click.command("lint", context_settings=SETTINGS)
@shared_options
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How findings are written.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--baseline", type=FILE, help="Leave out the findings in this file.")
@click.option("--write-baseline", type=FILE, help="Write the findings to this file instead of showing them.")
@click.option("--notes/--no-notes", default=True, show_default=True, help="Show what is worth knowing and no finding.")
@click.option("--all", "everything", is_flag=True, help="Show the uses that have no device-neutral form as well.")
@click.option(
    "--verdicts",
    is_flag=True,
    help="Say for each finding whether `fix` would rewrite it, or why not. Takes longer.",
)
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
    from compat_patches.cli.output import print_table
    from compat_patches.lint import baseline as baselines
    from compat_patches.lint import output, running
    from compat_patches.lint.errors import LintError

    options = running.Options(
        paths,
        min_torch,
        config,
        tables,
        baseline,
        everything,
        notes,
        ignore_baseline=write_baseline is not None,
    )
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
        print_table(("count", "level", "rule", "name"), output.statistics(report))
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
