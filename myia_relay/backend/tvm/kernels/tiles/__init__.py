"""Tiles of convolutions: functions that the kernels of a program share, and what tiles ask for ahead of time."""
