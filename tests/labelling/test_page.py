"""The page: escaped, offline, with every image in it."""

import base64
import html.parser
import io
import re

import numpy as np
from PIL import Image

from rat_tf.labelling import page
from tests import browser
from tests.data import make

HOSTILE = '<script>alert("x")</script>&\'.png'


class Tags(html.parser.HTMLParser):
    VOID = ("meta", "img", "wbr")

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_page_is_whole_offline_and_escaped():
    small, large = make.pixels(1, (8, 8, 1))[0], make.pixels(1, (500, 300, 3))[0]
    cards = [
        page.Card(HOSTILE, small, np.array([0.7, 0.3]), HOSTILE),
        page.Card("b.jpg", large, np.array([0.2, 0.8]), "why", label=HOSTILE),
    ]
    text = page.text(HOSTILE, HOSTILE, cards, (HOSTILE, "dog"))
    tags = Tags(text)
    assert not tags.open and "script" not in tags.seen and tags.seen.count("img") == 2
    assert not re.search(r"https?:|url\(|@import", text)
    sources = [value for name, value in tags.attributes if name == "src"]
    pictures = [Image.open(io.BytesIO(base64.b64decode(s.partition(",")[2]))) for s in sources]
    np.testing.assert_array_equal(np.asarray(pictures[0]), small[..., 0])  # without losses
    assert pictures[1].size == (144, 240)
    assert ("alt", f"1: {HOSTILE}") in tags.attributes
    assert "70%" in text and "prefers-color-scheme: dark" in text and "width=device-width" in text


@browser.needed
def test_a_browser_shows_it(tmp_path):
    cards = [
        page.Card("name" * 40, image, np.array([0.7, 0.3]), "why " * 30)
        for image in make.pixels(3, (20, 30, 3))
    ]
    path = tmp_path / "page.html"
    path.write_text(page.text("Images", "about", cards, ("c" * 80, "dog")), encoding="utf-8")
    found, broken, sticking_out, messages = browser.look(path, 420)
    assert (found, broken, messages) == (3, 0, []) and sticking_out <= 0
