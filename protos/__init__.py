"""The wire: messages, services, frames of the local socket, and the trust between daemons. Imports no other package
here.
"""
