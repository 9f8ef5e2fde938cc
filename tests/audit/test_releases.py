"""The built-in patches over eight releases of torch, and the same with windows spoilt on purpose.

Needs the wheels, which `compat-patches audit --torch 2.8.0 …` fetches; COMPAT_PATCHES_AUDIT_WHEELS names their folder.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_patches import manifest
from compat_patches.audit import documents, judging, outcome
from compat_patches.discovery import builtin_manifest

VERSIONS = ("2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
FOLDER = os.environ.get("COMPAT_PATCHES_AUDIT_WHEELS", "")
WHEELS = {version: found[0] for version in VERSIONS if (found := sorted(glob.glob(f"{FOLDER}/torch-{version}-*.whl")))}
pytestmark = pytest.mark.skipif(
    len(WHEELS) < len(VERSIONS), reason="COMPAT_PATCHES_AUDIT_WHEELS names no folder with the eight wheels"
)

Audit = Callable[..., outcome.Outcome]


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """Audits the built-in manifest, some text of which is replaced first."""

    def run(*replacements: tuple[str, str], only: str | None = None) -> outcome.Outcome:
        text = Path(builtin_manifest()).read_text(encoding="utf-8")
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new, 1)
        patches = manifest.parse(text.encode(), "spoilt").patches
        if only is not None:
            patches = tuple(patch for patch in patches if patch.id == only)
        return outcome.audit(patches, list(WHEELS.values()))

    return run


def verdicts(found: outcome.Outcome, identifier: str) -> dict[str, str]:
    return {j.release.label: j.verdict for j in found.judgements if j.patch.id == identifier}


def test_no_window_of_the_built_in_patches_is_wrong(audit: Audit) -> None:
    found = audit()
    assert [release.label for release in found.read] == list(VERSIONS)
    assert found.is_fine
    told = {judgement.verdict for judgement in found.judgements if judgement.patch.needed_if}
    assert told == {"needed", "not needed"}
    # Without evidence nothing can be said, but that what is to be patched is there.
    assert {judgement.verdict for judgement in found.judgements if not judgement.patch.needed_if} <= {"unknown"}


def test_the_table_in_the_documentation_is_the_one_that_comes_out(audit: Audit) -> None:
    page = (Path(__file__).parents[2] / "docs/audit.md").read_text(encoding="utf-8")
    assert documents.as_markdown(audit()) in page


def test_xpu_events_without_an_upper_bound(audit: Audit) -> None:
    found = audit(('requires = ["torch<2.15"]', 'requires = ["torch>=2.6"]'))
    assert verdicts(found, "xpu-event-blocking")["2.15.0"] == judging.TOO_WIDE
    assert [(j.patch.id, j.release.label) for j in found.mismatches] == [("xpu-event-blocking", "2.15.0")]


def test_fx_graph_on_2_10_alone(audit: Audit) -> None:
    found = audit(
        ('requires = ["torch>=2.10,<2.11"]', 'requires = ["torch==2.10.*"]'), only="fxgraph-cache-value-error"
    )
    assert {label for label, v in verdicts(found, "fxgraph-cache-value-error").items() if v == judging.TOO_NARROW} == {
        "2.8.0",
        "2.9.1",
    }


def test_a_target_under_another_name(audit: Audit) -> None:
    name = "fxgraph-cache-value-error"
    found = audit(("FxGraphCachePickler.dumps", "FxGraphCachePickler.dump_all"), only=name)
    assert verdicts(found, "fxgraph-cache-value-error")["2.10.0"] == judging.TARGET_MISSING
    (mismatch,) = found.mismatches
    assert "torch._inductor.codecache:FxGraphCachePickler has no 'dump_all'" in mismatch.reason


def test_pins(audit: Audit, tmp_path: Path) -> None:
    from compat_patches.audit import pinning, places

    (patch,) = (p for p in manifest.load(builtin_manifest()).patches if p.id == "cpu-memory-info")
    hashes = {p.release: p.hash for p in pinning.pins_of(patch, [places.open_release(WHEELS["2.10.0"])])}
    line = f'pins = {{ "2.10.0" = "{hashes["2.10.0"]}" }}'
    using = 'using = "compat_patches.patches.cpu_memory:answer_for_host"'
    found = audit((using, f"{using}\n{line}"))
    # Only comments were changed from 2.10 to 2.14; in 2.15 it is an annotation.
    assert {label for label, v in verdicts(found, "cpu-memory-info").items() if v == judging.DRIFTED} == {"2.15.0"}


def test_the_documented_command_names_these_releases() -> None:
    page = (Path(__file__).parents[2] / "docs/audit.md").read_text(encoding="utf-8")
    command = re.search(r"compat-patches audit --torch ([\d. ]+)", page)
    assert command is not None and command.group(1).split() == list(VERSIONS)
