"""`python -m causal_shaping`: the command line."""

from causal_shaping.cli import main

if __name__ == "__main__":
    main()
