"""The documents penny reads and writes: data types first, no effects besides reading and writing files."""
