"""A threadkeep backend in a folder: one JSON file per thread. The example of docs/write-an-adapter.md."""
