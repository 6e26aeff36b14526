"""The commands a user types: bsub, bjobs, bkill and their family, and lavactl itself.

Every command is ``main(argv, io) -> exit code``. Nothing here imports grpc or the other programs of lava.
"""

__version__ = "0.1.0"
