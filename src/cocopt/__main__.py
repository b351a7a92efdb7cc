"""``python -m cocopt`` is the command line."""

from cocopt.cli import app

if __name__ == "__main__":
    app(prog_name="cocopt")
