"""Fixtures that several test files use."""

from __future__ import annotations

from standins import strict_world, world

__all__ = ["strict_world", "world"]
