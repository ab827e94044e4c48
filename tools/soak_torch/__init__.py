"""Stress scripts that need real PyTorch: interrupts and forks at random moments, and short threads.

Run them in the parent of this folder with an interpreter that has torch:

    python -m soak_torch interrupts --count 5000
    python -m soak_torch forks --count 2000
    python -m soak_torch threads --count 16384
"""
