"""Sizes of the roles of running jobs, as users name them."""
