"""Makes the project of `inner_project` a fixture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from inner_project import Project


@pytest.fixture
def project(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project with patches and tests of its own, for an inner run of pytest."""
    # The plugin `pytester` declares this option, and can be asked for in the topmost conftest only.
    if not request.config.pluginmanager.has_plugin("pytester"):
        setattr(request.config.option, "--runpytest", "subprocess")
    project = Project(request, tmp_path_factory, monkeypatch, _ispytest=True)
    project.set_up(monkeypatch)
    return project
