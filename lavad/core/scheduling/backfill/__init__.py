"""Reservations of blocked jobs, and the admission of other jobs beside them."""
