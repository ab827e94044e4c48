"""`python -m mindprof`: the `mindprof` program when its script is not on the path."""

import sys

from mindprof._command import main

if __name__ == "__main__":
    sys.exit(main())
