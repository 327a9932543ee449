"""Types as the checker computes with them, and what is known of them."""
