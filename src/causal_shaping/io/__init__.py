"""Logs in Minari's format."""
