"""BLEU of a Transformer trained from nothing beside what it cost: `transformer_from_nothing.py --data FOLDER`."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import sacrebleu
import torch
from driving import begun, flags
from torch.nn.functional import cross_entropy
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import graftwork as gw
from graftwork.machine.environment import environment
from graftwork.train.flops import count_flops

HERE = Path(__file__).parent.absolute()
DATA, PARTS = Path("multi30k_en_de"), ("val", "test2016")
AT_ONCE, LONGEST, COUNTED = 50, 64, 50  # sentences written at once, tokens of one at most, sentences counted
DRAWS = 1000  # bootstrap draws of the sentences, for the interval of BLEU
MEMORY = "translation_memory"
# Vaswani et al. 2017, arXiv:1706.03762, Table 2: WMT 2014 English to German, newstest2014; other data than here
PUBLISHED = {
    "GNMT + RL (Wu et al. 2016)": (24.6, 2.3e19),
    "Transformer, base (Vaswani et al. 2017)": (27.3, 3.3e18),
    "Transformer, big (Vaswani et al. 2017)": (28.4, 2.3e19),
}


def pairs(part: str) -> tuple[list[str], list[str]]:
    """Return sources and references of a file."""
    with (DATA / f"{part}.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["source"] for row in rows], [row["target"] for row in rows]


class Translator:
    """The network of a folder; it writes the likeliest token each time."""

    def __init__(self, folder: Path):
        self.network: Any = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    def read(self, texts: list[str]) -> Any:
        """Return padded ids and mask."""
        return self.tokenizer(texts, return_tensors="pt", padding=True, return_token_type_ids=False)

    @torch.no_grad()
    def written(self, texts: list[str]) -> list[str]:
        """Return the translations, those of near-equal lengths written at once."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        found = [""] * len(texts)
        for start in range(0, len(order), AT_ONCE):
            places = order[start : start + AT_ONCE]
            ids = self.network.generate(
                **self.read([texts[place] for place in places]), max_new_tokens=LONGEST, num_beams=1, do_sample=False
            )
            decoded = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
            for place, text in zip(places, decoded, strict=True):
                found[place] = text.strip()
        return found

    @torch.no_grad()
    def perplexity(self, sources: list[str], targets: list[str]) -> float:
        """Return exp of the mean loss of a target's token."""
        nats = tokens = 0.0
        for start in range(0, len(sources), AT_ONCE):
            read, target = (self.read(side[start : start + AT_ONCE]) for side in (sources, targets))
            labels = target["input_ids"].masked_fill(target["attention_mask"] == 0, -100)
            logits = self.network(**read, labels=labels).logits
            nats += float(cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum", ignore_index=-100))
            tokens += int((labels >= 0).sum())
        return math.exp(nats / tokens)

    def flops(self, texts: list[str]) -> float:
        """Return the mean FLOP of a translation, each written by itself."""
        return sum(count_flops(lambda text=text: self.written([text]))[1] for text in texts) / len(texts)


def bleu_with_interval(texts: list[str], targets: list[str]) -> dict[str, float]:
    """Return BLEU with its 95 % interval over sentences, by sacrebleu's bootstrap."""
    found: Any = sacrebleu.BLEU().corpus_score(texts, [targets], n_bootstrap=DRAWS)
    low, high = found._mean - found._ci, found._mean + found._ci
    return {"bleu": found.score, "low": low, "high": high, "pairs": len(texts)}


def remembered(runs: Path) -> dict[str, Any]:
    """Return BLEU of the translation memory on test, which answers with the target of the most similar source."""
    files = [DATA / "train.tsv.gz", *(DATA / f"{part}.tsv" for part in PARTS)]
    task = gw.Task("multi30k", *map(str, files), kind="generation", text="source", label="target", metrics=("bleu",))
    module = gw.train(task, method=MEMORY, runs=runs).module
    sources, targets = pairs(PARTS[-1])
    return bleu_with_interval([row["text"] for row in module.predict(sources)], targets)


def scored(folder: Path) -> dict[str, Any]:
    """Return BLEU and perplexity of each part, the FLOP of a sentence, and the first translations."""
    translator, found = Translator(folder), dict[str, Any]()
    for part in PARTS:
        sources, targets = pairs(part)
        texts = translator.written(sources)
        found[part] = bleu_with_interval(texts, targets) | {"perplexity": translator.perplexity(sources, targets)}
        found["examples"] = [list(three) for three in zip(sources[:5], targets[:5], texts[:5], strict=True)]
    found["flop_per_sentence"] = translator.flops(pairs(PARTS[-1])[0][:COUNTED])
    return found


def table(result: dict[str, Any]) -> str:
    """Return the rows as Markdown."""
    lines = ["| network | data | BLEU | training FLOP | FLOP a sentence |", "|---|---|---|---|---|"]
    for name, (bleu, flops) in PUBLISHED.items():
        lines.append(f"| {name} | WMT 2014 en-de, newstest2014 | {bleu} | {flops:.1e} | |")
    counted = " | ".join(f"{result[name]:.1e}" for name in ("train_flop", "flop_per_sentence"))
    names = f"Transformer, {result['size']}, {result['steps']:,} steps", MEMORY.replace("_", " ")
    for name, test, prices in zip(names, (result["test2016"], result[MEMORY]), (counted, "0 |"), strict=True):
        told = f"{test['bleu']:.1f} ({test['low']:.1f} to {test['high']:.1f})"
        lines.append(f"| {name} | Multi30k en-de, test2016 | {told} | {prices} |")
    return "\n".join(lines)


def main() -> None:
    """Train, or go on; then score, write `results/NAME.json` and print the table."""
    parser = flags(__doc__, threads=torch.get_num_threads())
    parser.add_argument("--size", default="small")
    parser.add_argument("--budget", default="30min")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--name", default="multi30k")
    chosen = parser.parse_args()
    runs = begun(chosen)
    done = gw.pretrain(
        DATA / "train.tsv.gz", objective="translation", size=chosen.size, vocabulary=chosen.vocabulary,
        budget=chosen.budget, recipe={"batch": chosen.batch, "length": chosen.length}, runs=runs,
        precision=chosen.precision,
    )  # fmt: skip
    facts = done.result.facts
    result = {
        "format": 1,
        "status": done.result.status,
        "environment": environment(),
        "size": chosen.size,
        "budget": chosen.budget,
        "threads": chosen.threads,
        "precision": chosen.precision,
        "steps": facts["steps"],
        "passes": facts["passes"],
        "parameters": facts["parameters"],
        "vocabulary": facts["vocabulary"],
        "validation_perplexity": done.result.scores["perplexity"],
        "train_flop": done.result.costs["train_flops"].value,
        **scored(done.backbone),
        MEMORY: remembered(runs),
        "sacrebleu": sacrebleu.__version__,
    }
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / f"{chosen.name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(table(result))


if __name__ == "__main__":
    main()
