"""Hooks and fixtures, nothing else."""
