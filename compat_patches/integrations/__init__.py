"""Patches on the engines on which people run torch on many machines. Each module needs its engine only when called."""
