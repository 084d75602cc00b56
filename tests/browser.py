"""Pages in a real browser: Debian's chromium without a window."""

import re
import shutil
import subprocess
import tempfile

import pytest

CHROMIUM = shutil.which("chromium")
needed = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
#: Counts what was not loaded, and what does not fit the width of the window.
PROBE = """<script>addEventListener("load", () => {
const broken = [...document.images].filter(image => !image.naturalWidth).length;
document.body.dataset.probe = [document.images.length, broken,
document.documentElement.scrollWidth - innerWidth].join(" ") })</script>"""


def look(page, width: int) -> tuple[int, int, int, list[str]]:
    """Images, broken ones, pixels that stick out of the window, and console messages."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/page.html"
        with open(path, "w", encoding="utf-8") as file:
            file.write(page.read_text(encoding="utf-8").replace("</body>", PROBE + "</body>"))
        done = subprocess.run(
            [
                CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                f"--user-data-dir={folder}/profile", f"--window-size={width},800",
                "--enable-logging=stderr", "--dump-dom", f"file://{path}",
            ],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    numbers = re.search(r'data-probe="(\d+) (\d+) (-?\d+)"', done.stdout)
    messages = re.findall(r"CONSOLE.*", done.stderr)
    return *(int(number) for number in numbers.groups()), messages
