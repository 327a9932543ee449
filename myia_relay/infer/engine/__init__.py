"""The engine: coroutines, frames, recursion, and the typed program that results."""
