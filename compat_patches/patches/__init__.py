"""Implementations of the built-in patches, a file a subject. Why each exists stands in the manifest."""
