"""The queries with which programs look for a GPU; there is none."""


def is_available() -> bool:
    """Returns `False`: the runtime computes on the CPU."""
    return False


def device_count() -> int:
    """Returns 0: there are no GPUs."""
    return 0


__all__ = ["device_count", "is_available"]
