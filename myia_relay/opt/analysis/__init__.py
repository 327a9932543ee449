"""Facts about a typed graph, none of which changes it: ranges of integers, fusion groups, the axes that rows run along."""
