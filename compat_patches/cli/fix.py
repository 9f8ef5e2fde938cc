"""`compat-patches fix`: rewrite what may be rewritten safely, and say why the rest stays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compat_patches.cli._lint_options import SETTINGS, shared_options

if TYPE_CHECKING:
    from compat_patches.lint.fixing import Fixed
    from compat_patches.lint.sources import Problem


@click.command("fix", context_settings=SETTINGS)
@shared_options
@click.option("--write", is_flag=True, help="Write the files instead of showing a diff.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document instead of a diff.")
def fix(
    paths: tuple[Path, ...],
    write: bool,
    min_torch: tuple[int, int] | None,
    config: Path | None,
    tables: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Rewrite torch.cuda API under PATHS to its device-neutral form, where that changes nothing.

    Shows a diff, and on stderr what stays and why. Exit code 0: nothing to do, or all of it written.
    1: there is something to write, or something stays. 2: the call or the configuration is wrong.
    """
    from compat_patches.cli import _lint_terminal as terminal
    from compat_patches.cli.output import print_json
    from compat_patches.lint import fixing, running
    from compat_patches.lint.errors import LintError

    # A baseline puts off mending; this is mending.
    options = running.Options(paths, min_torch, config, tables, ignore_baseline=True)
    results: list[Fixed] = []
    try:
        with terminal.Progress() as progress:
            report = running.run(options, progress)
            failures: list[Problem] = []
            for result in fixing.fix(report, progress):
                if not isinstance(result, fixing.Fixed):
                    failures.append(result)
                    continue
                failure = fixing.write(result) if write and result.changed else None
                if failure is not None:
                    failures.append(failure)
                else:
                    results.append(result)
    except LintError as error:
        raise terminal.Misuse(str(error)) from error
    problems = [*report.problems, *failures]
    left = [(result, verdict) for result in results for verdict in result.verdicts if not verdict.rewritten]
    changed = [result for result in results if result.changed]
    rewritten = sum(verdict.rewritten for result in results for verdict in result.verdicts)
    if as_json:
        print_json(_document(results, problems, write))
    elif not write:
        for result in changed:
            _show(result.diff())
    if not as_json:
        for result, verdict in left:
            row, column = verdict.position[:2]
            click.echo(f"{result.source.path}:{row}:{column + 1}: {verdict.name} stays: {verdict.reason}", err=True)
        done = "rewritten" if write else "can be rewritten"
        click.echo(f"{rewritten} {done} in {len(changed)} of {report.files} files, {len(left)} stay", err=True)
    terminal.report_problems(problems)
    raise SystemExit(1 if left or (changed and not write) or failures else 0)


def _show(diff: str) -> None:
    for line in diff.splitlines(keepends=True):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[0])
        is_header = line.startswith(("--- ", "+++ "))
        click.echo(click.style(line, bold=True) if is_header else click.style(line, fg=colour), nl=False)


def _document(results: list[Fixed], problems: list[Problem], written: bool) -> dict[str, object]:
    return {
        "schema": 1,
        "written": written,
        "files": [
            {
                "path": result.source.path,
                "changed": result.changed,
                "diff": result.diff(),
                "findings": [
                    {
                        "row": verdict.position[0],
                        "column": verdict.position[1] + 1,
                        "name": verdict.name,
                        "rewritten": verdict.rewritten,
                        "reason": verdict.reason,
                    }
                    for verdict in result.verdicts
                ],
            }
            for result in results
        ],
        "problems": [{"path": problem.path, "reason": problem.reason} for problem in problems],
    }
