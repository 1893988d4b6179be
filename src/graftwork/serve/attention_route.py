"""`POST /v1/attention`: the attention weights between words of one text in a head of the bank's backbone."""

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

MOST_WORDS = 128  # more do not fit in the picture


class HasBackbone(Protocol):
    """The required interface of a bank."""

    def open_backbone(self) -> Backbone:
        """Open the backbone that all tasks share. Raises `ConfigError` before there is one."""


class Attending:
    """The route; computes one text at a time, so that it never uses more than one thread."""

    def __init__(self) -> None:
        self._busy = False

    async def answer(self, service: Service, request: Request) -> Response:
        """Answer a request. Raises `HttpRefusal`: 400, 422 for a wrong body, 429 while another is computed, 503."""
        body = read_json(await read_body(service, request))
        if self._busy:
            raise busy("the attention in another text is being computed")
        self._busy = True
        try:
            found = await run_in_threadpool(attention, service.bank, body)
        except ConfigError as error:
            raise HttpRefusal.of(error, 422, "body") from None
        except GraftworkError as error:  # the backbone's files are missing or changed, or out of memory
            raise HttpRefusal(503, without_places(error.message), where="backbone", retry_after=60) from None
        finally:
            self._busy = False
        return Response(to_json(found), media_type="application/json")


def attention(bank: HasBackbone, body: Any) -> dict[str, Any]:
    """Return the answer to `{"text": …, "block": 0, "head": 0}`, blocks and heads counted from 0.

    `words` as in the text, which of them were `added` by the tokeniser, `weights` (words, words) whose rows sum to 1,
    the numbers of `blocks` and `heads`, and whether the text was `cut`. Raises `ConfigError` for a wrong body, a text
    of too many words, a block or head that does not exist, and a backbone that does not read texts or does not give
    its attention weights.
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
    """Parse the text, the block and the head from a request's body."""
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
