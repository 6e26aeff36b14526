"""A personal cluster: several hosts on one machine, made of namespaces, for one person or one test."""
