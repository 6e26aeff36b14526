"""Use of this host's GPUs by attempts: who computes on them, how much, and what stays when an attempt is gone."""
