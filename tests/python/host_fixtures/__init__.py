"""What torch's layers and optimizers do, recorded, and how the host is compared with it."""
