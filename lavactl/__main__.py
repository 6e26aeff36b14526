"""``python -m lavactl SUBCOMMAND ...``: the same as the program lavactl."""

from lavactl.main import lavactl

if __name__ == "__main__":
    lavactl()
