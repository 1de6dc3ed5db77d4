"""The papers' figures and tables, re-run: `python -m experiments run NAME`."""
