"""`python -m mmagold`: the command."""

from mmagold import main

if __name__ == "__main__":
    main()
