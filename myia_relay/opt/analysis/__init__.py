"""Analyses of typed graphs, none of which changes a graph: ranges of integers, fusion groups, the axes that rows run
along.
"""
