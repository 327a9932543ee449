"""Transforms inside compiled code: gradients, Jacobians, batches, control flow as functions."""
