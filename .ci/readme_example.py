"""Print the first Python code block of a Markdown file."""

import re
import sys
from pathlib import Path


def first_python_block(text: str) -> str:
    """Return the code between the first python fence and the fence that closes it."""
    match = re.search(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    if match is None:
        raise SystemExit("no python block found")
    return match.group(1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: readme_example.py FILE.md")
    print(first_python_block(Path(sys.argv[1]).read_text(encoding="utf-8")), end="")
