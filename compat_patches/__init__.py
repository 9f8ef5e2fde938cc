"""Declared, version-gated, reversible run-time patches for PyTorch."""

__version__ = "0.1.0"
