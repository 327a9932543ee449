"""What the names of `myia_relay.library.kernels` mean on staged values."""
