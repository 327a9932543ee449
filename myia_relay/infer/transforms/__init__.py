"""Transforms inside of compiled code: gradients, Jacobians, batches, control as functions."""
