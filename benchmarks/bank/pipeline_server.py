"""A `transformers` pipeline behind the same HTTP stack, as one writes it in ten lines.

    pipeline_server.py FOLDER fp32|bf16 CLASSES THREADS AT_ONCE

The network is the default backbone with a random classification head with the task's number of classes: its answers are
meaningless, only its time counts. It takes the body of `POST /v1/predict`, one row at a time, and prints its port.
"""

from __future__ import annotations

import asyncio
import socket
import sys

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline


def main() -> None:
    """Serve until killed."""
    folder, precision, (classes, threads, at_once) = sys.argv[1], sys.argv[2], map(int, sys.argv[3:])
    torch.set_num_threads(threads)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=classes, dtype=dtype)
    answer = pipeline("text-classification", model=model, tokenizer=AutoTokenizer.from_pretrained(folder), top_k=None)

    turns = asyncio.Semaphore(at_once)

    async def predict(request: Request) -> JSONResponse:
        row = await request.json()
        async with turns:
            return JSONResponse(await run_in_threadpool(answer, row["text"]))

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # as `graft serve` does
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    app = Starlette(routes=[Route("/v1/predict", predict, methods=["POST"])])
    config = uvicorn.Config(app, http="httptools", loop="asyncio", log_level="critical", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
