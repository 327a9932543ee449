"""Writing rows of an array."""

from __future__ import annotations


def put_rows(x, at, rows):
    """`x` with its rows at positions replaced one after the other: of several at one position the last stays."""
    out = x.copy()
    for k in range(at.shape[0]):
        out[at[k]] = rows[k]
    return out


def combine_rows(function, x, at, rows):
    """`x` with its rows at positions replaced by `function(row, other)`, one after the other: repeated positions accumulate."""
    out = x.copy()
    for k in range(at.shape[0]):
        out[at[k]] = function(out[at[k]], rows[k])
    return out


def change_rows(function, x, at):
    """`x` with its rows at positions replaced by `function(row)`, as often as they occur."""
    out = x.copy()
    for k in range(at.shape[0]):
        out[at[k]] = function(out[at[k]])
    return out
