"""Commands that users type: bsub, bjobs, bkill and the other b- and ls-commands, and lavactl itself.

Every command is ``main(argv, io) -> exit code``. Nothing here imports grpc or the other programs of lava.
"""
