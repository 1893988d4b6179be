"""Words: how a text is cut, and where its words stand."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator

import pytest

from graftwork.data.checks import cues, near_duplicates
from graftwork.pretrained.known_words import pieces
from graftwork.targets.words import APART, TOKEN, WORD, apart, cut_words, example_of, word_places


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("my card is lost", ["my", "card", "is", "lost"]),
        ("  It's (almost) 3.5, or 1,000!\n", ["It", "'", "s", "(", "almost", ")", "3.5", ",", "or", "1,000", "!"]),
        ("T-cell\u00a0x", ["T", "-", "cell", "x"]),
        ("1. 2", ["1", ".", "2"]),
        ("हिन्दी में।", ["हिन्दी", "में", "।"]),
        ("a€5", ["a", "€", "5"]),
        ("我的iPhone丢了。", ["我", "的", "iPhone", "丢", "了", "。"]),
        ("3.5万人, 𠮷野家", ["3.5", "万", "人", ",", "𠮷", "野", "家"]),
        ("スーパーへ行く", ["ス", "ー", "パ", "ー", "へ", "行", "く"]),
        ("น้ำ ๒๕๖๐", ["น้", "ำ", "๒๕๖๐"]),
        (" \u0301a\u0301b", ["\u0301a\u0301b"]),
        (" \n", []),
    ],
)
def test_cut(text: str, words: list[str]) -> None:
    assert list(cut_words(text)) == words
    assert [text[start:end] for start, end in word_places(cut_words(text), text)] == words


def test_places_of_words_that_occur_in_one_another() -> None:
    assert word_places(["a", "aa", "a"], "a aa a") == [(0, 1), (2, 4), (5, 6)]
    assert word_places(["1 000", "000"], "1 000 000") == [(0, 5), (6, 9)]


def test_a_text_is_kept_beside_its_words() -> None:
    cut, given = example_of("x", "Hi, you"), example_of("y", ("Hi,", "you"))
    assert cut.inputs == {"words": ("Hi", ",", "you")} and cut.source == "Hi, you"
    assert given.inputs == {"words": ("Hi,", "you")} and given.source is None


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("我的银行卡丢了，请问怎么办？", list("我的银行卡丢了，请问怎么办？")),
        ("カードをなくしました!", list("カードをなくしました!")),
        ("か\u3099くせい 人々 ２０２４年", ["か\u3099", "く", "せ", "い", "人", "々", "２０２４", "年"]),
        ("ฉันทำบัตรหาย", ["ฉั", "น", "ท", "ำ", "บั", "ต", "ร", "ห", "า", "ย"]),
        ("ບັດ ຂອງ", ["ບັ", "ດ", "ຂ", "ອ", "ງ"]),
        ("កាត", ["កា", "ត"]),
        ("ကတ်", ["က", "တ်"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("मेरा कार्ड खो गया है।", ["मेरा", "कार्ड", "खो", "गया", "है", "।"]),
        ("ශ්\u200dරී ලංකා", ["ශ්\u200dරී", "ලංකා"]),
        ("cafe\u0301s, ❤\ufe0f", ["cafe\u0301s", ",", "❤", "\ufe0f"]),
        ("내 카드를 잃어버렸어요", ["내", "카드를", "잃어버렸어요"]),
        ("\u0301x", ["\u0301", "x"]),
    ],
)
def test_tokens_of_scripts_without_spaces_and_with_marks(text: str, tokens: list[str]) -> None:
    assert re.findall(TOKEN, text) == tokens
    assert re.findall(WORD, text) == [token for token in tokens if token[0].isalnum()]


def plain_texts() -> Iterator[str]:
    """Of scripts with spaces, without combining marks."""
    yield from (
        "It's (almost) 3.5, or 1,000! e-mail: a_b@c.de\tx\r\n",
        "Ça coûte 12,50 €, n’est-ce pas? Straße ﬁne",
        "Моя карта потеряна — что делать?",
        "فقدت بطاقتي، ماذا أفعل؟ ١٢٣",
        "می\u200cخواهم",
        "אבד לי הכרטיס. Χάθηκε η κάρτα; ქართული",
        "카드를 잃어버렸어요. 🙂👍🏽",
    )
    blocks = ((9, 13), (32, 126), (0xA0, 0x24F), (0x391, 0x3C9), (0x410, 0x44F), (0x621, 0x64A), (0x660, 0x669),
              (0x200B, 0x203A), (0x20A0, 0x20BF), (0xAC00, 0xAC80), (0x1F600, 0x1F640))  # fmt: skip
    alphabet = [chr(code) for first, last in blocks for code in range(first, last + 1)]
    draw = random.Random(0)
    for _ in range(300):
        yield "".join(draw.choices(alphabet, k=40))
        yield "".join(draw.choices("ab1_.,'’- é", k=20))


def cut_as_before(text: str) -> tuple[str, ...]:
    words: list[str] = []
    goes_on = False
    for place, char in enumerate(text):
        number = char in ".," and text[place - 1 : place].isdecimal() and text[place + 1 : place + 2].isdecimal()
        if char.isspace():
            goes_on = False
        elif unicodedata.category(char)[0] in "PS" and not number:
            words.append(char)
            goes_on = False
        elif goes_on:
            words[-1] += char
        else:
            words.append(char)
            goes_on = True
    return tuple(words)


def test_other_texts_are_cut_as_ever() -> None:
    """Ids, features and stored vocabularies of them rest on it."""
    for text in (*plain_texts(), "I ❤️ it", "1️⃣ ✌️it"):
        assert not APART.search(text)
        assert re.findall(TOKEN, text) == re.findall(r"(?u)\w+|[^\w\s]", text)
        assert re.findall(WORD, text) == re.findall(r"\w+", text)
        assert cues._TOKEN.findall(text) == re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text)
        assert near_duplicates._WORD.findall(text) == re.findall(r"[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+", text)
        assert cut_words(text) == cut_as_before(text)
        assert all(apart(pieces(chunk)) == pieces(chunk) for chunk in text.split())


def test_a_long_text_without_spaces_takes_no_time_to_speak_of() -> None:
    text = "a" + "\u0301" * 20_000 + "我" * 20_000 + "x\u0301" * 20_000
    assert len(re.findall(TOKEN, text)) == len(cut_words(text)) == 20_002
