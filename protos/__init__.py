"""The wire: messages, services, frames of the local socket, and the trust between daemons. Imports no other package
here.
"""

__version__ = "0.1.0"  # of all programs; setup.cfg says the same, and reading that of the installation takes 40 ms
