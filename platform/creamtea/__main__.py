"""`creamtea` and `python -m creamtea`: the command line. Ctrl-C may come while it is imported."""

import sys


def main() -> None:
    try:
        from creamtea.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
