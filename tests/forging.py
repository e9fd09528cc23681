"""Files of ours that somebody changed on purpose: their checksums fit, so that what is inside must be looked at."""

import pyarrow.parquet as pq

from causal_shaping.storage import BLANK, CHECKSUM_KEY, METADATA_KEY, insert_checksum


def forge(table, path, metadata=None):
    """Write a table with the metadata that it has, or others as JSON, and with a checksum that fits."""
    keys = dict(table.schema.metadata)
    if metadata is not None:
        keys[METADATA_KEY] = metadata
    pq.write_table(table.replace_schema_metadata(keys | {CHECKSUM_KEY: BLANK}), path)
    path.write_bytes(insert_checksum(path.read_bytes()))
