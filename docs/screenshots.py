"""Pictures of six pages of the built site, on a screen and on a phone: `python docs/screenshots.py`.

Run `make docs` first. The pictures go to docs/images/site; they need playwright and a Chromium.
"""

import argparse
import functools
import http.server
import io
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = {1280: 900, 390: 844}  # and their heights
PAGES = {  # by name: the page, perhaps with a place on it, and the colours
    "landing": ("index.html", "light"),
    "bandits": ("bandits.html#which-policy", "light"),
    "tutorial": ("tutorials/dataframe.html", "dark"),
    "reference": ("reference/policies/PerAction.html", "light"),
    "mathematics": ("mathematics.html#the-ridge-system-and-the-radius", "dark"),
    "reproduction": ("reproduction.html", "light"),
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the parent's)
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder over HTTP: search does not work from files."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def take(browser: Browser, url: str, width: int, colours: str) -> Image.Image:
    """What one window shows of a page."""
    window = browser.new_page(viewport={"width": width, "height": WIDTHS[width]})
    window.emulate_media(color_scheme="dark" if colours == "dark" else "light", reduced_motion="reduce")
    answer = window.goto(url)
    if answer is None or not answer.ok:
        raise SystemExit(f"there is no page {url}; build the site first: make docs")
    window.wait_for_load_state("networkidle")
    taken = Image.open(io.BytesIO(window.screenshot(animations="disabled")))
    window.close()
    return taken


def named(page: str) -> tuple[str, tuple[str, str]]:
    """One of the six, or any page by its path."""
    if page in PAGES:
        return page, PAGES[page]
    path, _, colours = page.rpartition(":")
    return Path(path.partition("#")[0]).stem, (path, colours)


def main() -> None:
    """Take all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, default=ROOT / "site", help="the built site")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "site")
    parser.add_argument("--page", action="append", help="instead: PATH:COLOURS, or one of the six by name")
    chosen = parser.parse_args()
    pages = PAGES
    if chosen.page:
        pages = dict(map(named, chosen.page))
    chosen.out.mkdir(parents=True, exist_ok=True)
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with served(chosen.site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name, (page, colours) in pages.items():
            for width in WIDTHS:
                taken = take(browser, f"{address}/{page}", width, colours)
                path = chosen.out / f"{name}-{width}.png"
                taken.convert("RGB").quantize(128).save(path, optimize=True)  # a third of the size
        browser.close()


if __name__ == "__main__":
    main()
