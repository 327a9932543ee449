"""Models: hidden parameters, layers, optimisers, training, datasets."""
