"""Trust between daemons: the authority, certificates, tickets, mutual TLS."""
