"""Write the generated parts of the documentation: the tables in README.md, docs/manifest.md and docs/patches/.

What stands between ``<!-- generated: … -->`` and ``<!-- end -->`` comes from the manifest and from the declarations of
its fields; the rest is written by hand. ``--check`` writes nothing, and fails where a file is not up to date.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

os.environ.setdefault("COMPAT_PATCHES", "off")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from compat_patches import fields, manifest  # noqa: E402  # behind the path on purpose
from compat_patches.manifest import Patch, Step  # noqa: E402

GENERATED = re.compile(r"(<!-- generated: (?P<what>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
PATCHES = {patch.id: patch for patch in manifest.load(ROOT / "patches.toml").patches}


def generated(what: str) -> str:
    """The text of one generated part."""
    if what == "table of patches":
        return table_of_patches()
    if what.startswith("fields of "):
        return table_of_fields(getattr(fields, what.removeprefix("fields of ")))
    if what == "kinds of evidence":
        return table_of_evidence()
    return facts_of(PATCHES[what.removeprefix("patch ")])


def table_of_patches() -> str:
    rows = ["| patch | what it does | for | applied |", "|---|---|---|---|"]
    for patch in PATCHES.values():
        applied = "inside of `applied(…)`" if patch.scope == "context" else "yes" if patch.enabled else "by its name"
        rows.append(f"| [`{patch.id}`](docs/patches/{patch.id}.md) | {patch.summary} | {_window(patch)} | {applied} |")
    return "\n".join(rows)


def table_of_fields(declared: Mapping[str, fields.Field]) -> str:
    rows = ["| key | value | meaning |", "|---|---|---|"]
    for name, field in declared.items():
        mandatory = " Mandatory." if field.required else ""
        rows.append(f"| `{name}` | {_cell(field.kind.expected)} | {_cell(field.doc)}{mandatory} |")
    return "\n".join(rows)


def table_of_evidence() -> str:
    rows = ["| kind | value |", "|---|---|"]
    rows += [f"| `{name}` | {_cell(kind.expected)} |" for name, kind in fields.EVIDENCE_KINDS.items()]
    return "\n".join(rows)


def facts_of(patch: Patch) -> str:
    evidence = "; ".join(f"`{kind} = {wanted!r}`" for kind, wanted in patch.needed_if.items())
    rows = [
        *(("changes", _change(step)) for step in patch.steps),
        ("for", _window(patch)),
        ("evidence", evidence),
        ("groups", ", ".join(f"`{group}`" for group in patch.groups)),
        ("upstream", ", ".join(f"<{link}>" for link in patch.upstream)),
        ("goes when", patch.remove_when),
    ]
    table = ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows if text)]
    return "\n".join([f"{patch.summary}. {patch.why.strip()}", "", *table])


def _change(step: Step) -> str:
    where = f", where {' and '.join(step.requires)}" if step.requires else ""
    return f"{', '.join(f'`{target}`' for target in step.targets)} ({step.action}{where})"


def _window(patch: Patch) -> str:
    window = ", ".join(patch.requires) or "every torch"
    return f"{window}, built for {' or '.join(patch.build)}" if patch.build else window


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(check: bool) -> int:
    """Write all files, or with ``check`` name those that would change. Returns the exit status."""
    stale = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = path.read_text(encoding="utf-8")
        after = GENERATED.sub(lambda match: f"{match[1]}{generated(match['what'])}\n{match[3]}", before)
        if after != before:
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(after, encoding="utf-8")
    for path in stale:
        print(f"{path} {'is not up to date; run docs/generate.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
