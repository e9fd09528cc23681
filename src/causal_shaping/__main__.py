"""`python -m causal_shaping`: the command line."""

from causal_shaping.cli import command

if __name__ == "__main__":
    command()
