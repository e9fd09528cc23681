"""Files: written whole or not at all, with their kind, version, checksum and labels inside."""
