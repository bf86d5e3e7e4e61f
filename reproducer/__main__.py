"""`python -m reproducer` is `penny`."""

from reproducer.cli import main

if __name__ == "__main__":
    main()
