"""The wire: messages, services, frames of the local socket, and the trust between daemons. Imports nothing of ours."""
