"""The embedded threadkeep backend: one libSQL file, no server."""
