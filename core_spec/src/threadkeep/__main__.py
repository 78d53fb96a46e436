"""``python -m threadkeep``: the same as the ``threadkeep`` command."""

from .cli import main

if __name__ == "__main__":
    main()
