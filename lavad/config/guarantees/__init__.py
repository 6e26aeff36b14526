"""Guarantees of LSF's service classes: classes of lsb.serviceclasses, and their parts of pools of lsb.resources."""
