"""The command line. Each command is a module, imported when it is called; so are the libraries it uses."""

from __future__ import annotations

import importlib

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("compat_patches.cli.inspect:list_", "List the declared patches."),
    "status": ("compat_patches.cli.inspect:status", "Show how each patch stands in this environment, and why."),
    "explain": ("compat_patches.cli.inspect:explain", "Explain one patch."),
    "check": ("compat_patches.cli.authoring:check", "Check a manifest."),
    "schema": ("compat_patches.cli.authoring:schema", "Print the JSON Schema of manifests."),
    "run": ("compat_patches.cli.run:run", "Run a program with the patches active."),
    "doctor": ("compat_patches.cli.doctor:doctor", "Find out why the patches are or are not active, and what to do."),
    "enable": ("compat_patches.cli.startup:enable", "Switch the patches on for this environment."),
    "disable": ("compat_patches.cli.startup:disable", "Take enable back."),
    "sitecustomize": ("compat_patches.cli.startup:sitecustomize", "Print a folder for PYTHONPATH that activates."),
    "demo": ("compat_patches.cli.demo:demo", "Show a call that fails without the patches and works with them."),
    "audit": ("compat_patches.cli.audit:audit", "Hold the patches against the sources of torch releases."),
    "diff": ("compat_patches.cli.audit:diff", "Show how upstream changed what a patch changes."),
    "pin": ("compat_patches.cli.audit:pin", "Write the hashes of the sources that a patch is for."),
    "expire": ("compat_patches.cli.audit:expire", "Find what can be deleted when old releases are given up."),
    "lint": ("compat_patches.cli.lint:lint", "Find torch.cuda API that has a device-neutral form."),
    "fix": ("compat_patches.cli.fix:fix", "Rewrite what can be rewritten safely."),
}
"""Name, command and help of each command, so that `--help` imports none of them."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="compat-patches")
def main() -> None:
    """Declared, version-gated, reversible run-time patches for PyTorch.

    Exit status: 0 fine, 1 found something, 2 misuse.
    """
