"""`POST /v1/attention`: what a head of the bank's backbone attends to in one text, word by word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graftwork.core.backbone import Backbone
from graftwork.errors import ConfigError, GraftworkError, clip
from graftwork.pretrained.attention_weights import attention_weights
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.serve.http_errors import HttpRefusal, busy
from graftwork.serve.predict_route import read_body, to_json
from graftwork.serve.request_parsing import read_json
from graftwork.serve.service import Service, without_places

MOST_WORDS = 128  # a picture of more has no place for them


class HasBackbone(Protocol):
    """What is needed of a bank."""

    def open_backbone(self) -> Backbone:
        """The one that all tasks share. Raises `ConfigError` before there is one."""


class Attending:
    """The route: one picture at a time, so that pictures never take more than a thread from the answers."""

    def __init__(self) -> None:
        self._busy = False

    async def answer(self, service: Service, request: Request) -> Response:
        """Raises `HttpRefusal`: 400 and 422 for another body, 429 while another picture is computed, 503."""
        body = read_json(await read_body(service, request))
        if self._busy:
            raise busy("the attention in another text is being computed")
        self._busy = True
        try:
            found = await run_in_threadpool(attention, service.bank, body)
        except ConfigError as error:
            raise HttpRefusal.of(error, 422, "body") from None
        except GraftworkError as error:  # the backbone's files are gone or others by now, or no memory for a text
            raise HttpRefusal(503, without_places(error.message), where="backbone", retry_after=60) from None
        finally:
            self._busy = False
        return Response(to_json(found), media_type="application/json")


def attention(bank: HasBackbone, body: Any) -> dict[str, Any]:
    """The answer to `{"text": …, "block": 0, "head": 0}`, blocks and heads counted from 0.

    `words` as they stand in the text, which of them are `added` by the tokenizer, `weights` (words, words) whose rows
    sum to 1, how many `blocks` and `heads` there are, and whether the text was `cut`. Raises `ConfigError` for another
    body, a text of too many words, a block or head that is not there, and a backbone that does not read texts or keeps
    its weights to itself.
    """
    text, block, head = _asked(body)
    backbone = bank.open_backbone()
    if not isinstance(backbone, TransformerBackbone):
        reads = f"{backbone.card.id} reads {backbone.card.modality}s"
        raise ConfigError(
            "this bank's backbone has no attention over words", got=reads, do="ask a bank on a Transformer for it"
        )
    found = attention_weights(backbone, text, block, head, most_words=MOST_WORDS)
    return {
        "words": list(found.words),
        "added": list(found.added),
        "weights": [[round(weight, 5) for weight in row] for row in found.of_words().tolist()],
        "blocks": found.blocks,
        "heads": found.heads,
        "cut": found.cut,
    }


def _asked(body: Any) -> tuple[str, int, int]:
    """The text, the block and the head of a request's body."""
    wanted = '{"text": "…", "block": 0, "head": 0}'
    if not isinstance(body, Mapping) or not {"text"} <= body.keys() <= {"text", "block", "head"}:
        raise ConfigError("the body is not what attention is asked by", got=clip(str(body)), expected=wanted)
    text = body["text"]
    if not isinstance(text, str) or not text.strip():
        raise ConfigError("text is not a text", got=clip(str(text)), expected="a string that is not empty")
    numbers = [body.get(name, 0) for name in ("block", "head")]
    if not all(type(number) is int for number in numbers):
        raise ConfigError("block or head is not a number", got=clip(str(numbers)), expected="whole numbers from 0")
    return text, numbers[0], numbers[1]
