"""The frameworks that run operators: one protocol, its implementations, and the choice of one."""
