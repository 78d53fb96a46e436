"""The ``threadkeep`` command.

A module per group of commands, imported when one of them is called: ``threadkeep backends`` must answer at
once. Exit codes: 0 ok; 1 the database's side; 2 the call (its arguments, an input file, the installation);
130 interrupted with Ctrl-C; 141 the reader of a pipe went away.
"""

from ._group import cli

__all__ = ["cli", "main"]


def main() -> None:
    """Run the command with the process's arguments and exit."""
    cli(prog_name="threadkeep")
