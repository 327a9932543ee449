"""Inspection: the IR as text and pictures."""
