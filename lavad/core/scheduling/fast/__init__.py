"""Fast paths of a pass: each decides the same as the plain path where it applies."""
