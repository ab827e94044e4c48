"""Installs the engine in every interpreter whose path of modules has this folder.

The interpreter imports a module of this name when it starts, so that processes which a test starts
record with the engine too.
"""

import mindprof

mindprof.install()
