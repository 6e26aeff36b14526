"""A personal cluster: several hosts on one machine, made of namespaces, for one user or one test."""
