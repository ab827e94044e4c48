"""What programs ask before they choose a device: there is none."""


def is_available() -> bool:
    """Returns False: the runtime computes on the processor."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


__all__ = ["device_count", "is_available"]
