"""Source locations and the two kinds of error: the user's and ours."""
