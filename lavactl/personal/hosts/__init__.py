"""Hosts of a personal cluster: namespaces, network, control groups."""
