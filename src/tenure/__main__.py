"""`python -m tenure`: the command line. Does nothing else."""

import sys

from tenure.cli import main

if __name__ == "__main__":
    sys.exit(main())
