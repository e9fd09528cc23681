"""Whether fitted ceilings help: against other estimators and bounds, and for agents; `python -m field --help`."""
