"""What commands print: tables on a terminal, plain text in a pipe, JSON for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

STYLES = {
    "applied": "green",
    "pending": "cyan",
    "skipped": "dim",
    "failed": "bold red",
    "reverted": "dim",
    "overlaid": "yellow",
    "lost": "yellow",
}


def print_json(document: Any) -> None:
    """Print a document as JSON, for machines."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows: a table on a terminal; in a pipe a line a row, the cells separated by tabs, without headings."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(cell.replace("\n", " ").replace("\t", " ") for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("patch", "state"))
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    Console().print(table)
