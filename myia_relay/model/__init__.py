"""Models: parameters, layers, optimisers, training, datasets."""
