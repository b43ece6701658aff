"""`python -m durasim` runs the command `durasim`."""

from durasim.cli import app

if __name__ == "__main__":
    app(prog_name="durasim")
