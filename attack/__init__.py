"""Attacks on this package: each module tries one kind, counts what it tried, and names every defect."""
