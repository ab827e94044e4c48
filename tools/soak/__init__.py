"""A soak of an installed mindprof: rounds of rough use from a seed, each followed by checks.

Needs Python and mindprof and nothing else of the repository; numpy, pyarrow and the tools that set
the interpreter's hook are used where they can be imported. Run it where this folder lies:

    python -m soak --seconds 600 --seed 7
"""
