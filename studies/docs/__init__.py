"""The tables and figures of the documentation: `make tables`."""
