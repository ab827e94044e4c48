"""A plugin of pytest that installs the engine before the tests of somebody else are collected."""

import mindprof

mindprof.install()
