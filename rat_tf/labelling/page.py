"""The page that shows images to label, or labels to doubt: image, what the model thinks, why."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

import numpy as np

from rat_tf.labelling import thumbnails
from rat_tf.plots import page

SHOWN = 3  # classes of an image
STYLE = """
.cards { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)) }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .4rem;
  padding: .6rem; font-size: .87em; overflow-wrap: anywhere; display: flex; flex-direction: column }
.card img { width: 100%; height: 9rem; object-fit: contain; margin: 0 0 .4rem }
.card img.small { image-rendering: pixelated }
.card p { margin: .2rem 0 } .card .file { color: var(--soft) }
.guess { display: flex; flex-wrap: wrap; gap: 0 .5rem; align-items: baseline }
.guess span:first-child { flex: 1 0 auto; max-width: 100% } .guess span { margin-left: auto }
.guess meter { width: 3.2rem; flex: none }
.why { margin-top: auto !important; padding-top: .3rem }
"""


@dataclasses.dataclass(frozen=True)
class Card:
    name: str
    image: np.ndarray  # uint8 [H, W, C], of any size
    probabilities: np.ndarray  # [K]
    why: str
    label: str = ""  # that it has, if any


def text(title: str, about: str, cards: Sequence[Card], class_names: Sequence[str]) -> str:
    """The whole page; pictures are inside it."""
    body = [f'<p class="note">{html.escape(about)}</p>', '<div class="cards">']
    body += [_card(number, card, class_names) for number, card in enumerate(cards, 1)]
    return page.document(title, [*body, "</div>"], STYLE)


def _card(number: int, card: Card, class_names) -> str:
    kind, data = thumbnails.encoded(card.image)
    picture = page.picture(data, f"{number}: {card.name}", kind)
    if kind == "image/png":
        picture = picture.replace("<img ", '<img class="small" ', 1)
    best = np.argsort(-card.probabilities, kind="stable")[:SHOWN]
    guesses = "".join(
        f'<div class="guess"><span>{html.escape(class_names[k])}</span>'
        f"<span>{card.probabilities[k]:.0%}</span>"
        f'<meter value="{card.probabilities[k]:.3f}"></meter></div>'
        for k in best
    )
    label = f"<p>label: <b>{html.escape(card.label)}</b></p>" if card.label else ""
    name = html.escape(card.name).replace("/", "/<wbr>")  # the browser breaks a path there
    return (
        f'<div class="card">{picture}{label}{guesses}<p class="why">{html.escape(card.why)}</p>'
        f'<p class="file">{number}. {name}</p></div>'
    )
