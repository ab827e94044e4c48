"""A soak test of an installed mindprof: random rounds of rough use, each followed by checks.

Needs only Python and mindprof; numpy, pyarrow and tools that set the interpreter's profile hook are
used if they can be imported. Run it in the parent of this folder:

    python -m soak --seconds 600 --seed 7
"""
