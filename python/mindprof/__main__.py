"""`python -m mindprof`: the program, where its script is not on the path."""

import sys

from mindprof._command import main

sys.exit(main())
