"""`POST /v1/attention`: attention weights between the words of a text, in the bank's backbone or a task's network."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graftwork.core.backbone import Backbone
from graftwork.core.method import ReadsStates
from graftwork.core.model import site_of
from graftwork.core.writing import reading_part
from graftwork.errors import ConfigError, GraftworkError
from graftwork.pretrained.attention_weights import attention_weights
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.serve.http_bodies import AttentionQuestion, parsed_body, read_json
from graftwork.serve.http_errors import HttpRefusal, busy
from graftwork.serve.predict_route import read_body, to_json
from graftwork.serve.service import ServedTasks, Service, without_places
from graftwork.train.loop import FittedModel

MOST_WORDS = 128  # more do not fit in the picture


class Attending:
    """The route; computes one text at a time, so that it never uses more than one thread."""

    def __init__(self) -> None:
        self._busy = False

    async def answer(self, service: Service, request: Request) -> Response:
        """Answer a request. Raises `HttpRefusal`: 400, 422 for a wrong body, 429 while another is computed, 503."""
        asked = parsed_body(AttentionQuestion, read_json(await read_body(service, request)))
        if asked.task is not None:
            service.catalogue.named(asked.task, "body.task")
        if self._busy:
            raise busy("the attention in another text is being computed")
        self._busy = True
        try:
            found = await run_in_threadpool(attention, service.bank, asked)
        except ConfigError as error:
            raise HttpRefusal.of(error, 422, "body") from None
        except GraftworkError as error:  # the backbone's files are missing or changed, or out of memory
            raise HttpRefusal(503, without_places(error.message), where="backbone", retry_after=60) from None
        finally:
            self._busy = False
        return Response(to_json(found), media_type="application/json")


def network_of(bank: ServedTasks, task: str | None) -> Backbone:
    """Return the network of a task, with its adapters; the frozen backbone for None.

    Raises `ConfigError` for a method whose network is not the backbone with adapters or trained weights.
    """
    if task is None:
        return bank.open_backbone()
    module = bank.module(task)
    if module.backbone is not None and isinstance(module.fitted, FittedModel):
        model = module.fitted.model
        if all(site_of(place)[1] != "attention" for place in model.adapters):
            return model.backbone
    elif module.backbone is not None and isinstance(module.fitted, ReadsStates):
        return module.backbone  # it reads the states of the frozen network, and changes nothing in it
    got = str(module.description["method"]["name"])
    raise ConfigError("the attention of this task's method can't be shown", got=got, do="look at the backbone's")


def attention(bank: ServedTasks, asked: AttentionQuestion) -> dict[str, Any]:
    """Return the attention weights of a text in one head of a block, or in all, as JSON.

    Its keys: `words` as in the text; `added`, which of them the tokeniser added; `weights` (words, words) whose rows
    sum to 1, or (heads, words, words); the numbers of `blocks` and `heads`; `cut`, whether the text was. Raises
    `ConfigError` for a blank text, a text of too many words, a block or head that does not exist, and a backbone that
    does not read texts or does not give its attention weights.
    """
    if not asked.text.strip():
        raise ConfigError("the text is blank", expected="a string with words")
    backbone = reading_part(network_of(bank, asked.task))
    if not isinstance(backbone, TransformerBackbone):
        reads = f"{backbone.card.id} reads {backbone.card.modality}s"
        raise ConfigError(
            "this bank's backbone has no attention over words", got=reads, do="ask a bank on a Transformer for it"
        )
    found = attention_weights(backbone, asked.text, asked.block, asked.head, most_words=MOST_WORDS)
    return {
        "words": list(found.words),
        "added": list(found.added),
        "weights": found.of_words().astype("float64").round(5).tolist(),
        "blocks": found.blocks,
        "heads": found.heads,
        "cut": found.cut,
    }
