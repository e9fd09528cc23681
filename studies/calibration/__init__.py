"""Checks that are too long for the test suite: `make calibrate`."""
