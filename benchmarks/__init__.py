"""The same work in this compiler and in its peers, side by side: `python -m benchmarks lenet | accuracy | calls`."""
