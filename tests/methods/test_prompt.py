"""Prompts: scored as whole strings are, drawn by seeds, kept to the context, and restored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedTokenizerFast

import graftwork as gw
from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.cli.show import run_lines
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.kind import Kind
from graftwork.core.language_model import TokenTree
from graftwork.core.method import Setting
from graftwork.core.ragged import Ragged, flat
from graftwork.errors import ConfigError, IncompatibleModule, UnknownName
from graftwork.io.files import read_json
from graftwork.methods.prompt import CONTENT_FREE, Prompt
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.receipts.file_integrity import read_spec, record_differences
from graftwork.registry import kinds
from graftwork.run.receipt import with_seal
from graftwork.targets.prompt_templates import BUILT_IN, FORMS, read_templates
from graftwork.testing import check_method, tiny_bench, tiny_dataset
from graftwork.train.answer_tokens import prompt_tokens_of
from graftwork.train.continuations import log_likelihoods, read_before
from graftwork.train.flops import count_flops
from graftwork.train.prompt_tokens import begins_another
from graftwork.train.prompted import Prompted
from graftwork.train.seeds import derive
from sessions import write_toy

VOCABULARY = tiny_tokenizer().get_vocab_size()
LENGTH = 300
GPT2 = GPT2Config(
    vocab_size=VOCABULARY,
    n_embd=32,
    n_layer=2,
    n_head=2,
    n_positions=LENGTH,
    initializer_range=0.2,
    bos_token_id=2,
    eos_token_id=3,
)
LLAMA: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": LENGTH, "initializer_range": 0.2,
}  # fmt: skip
WINDOWS: dict[str, Any] = {"sliding_window": 60, "head_dim": 8}
UNGROUPED = {name: LLAMA[name] for name in LLAMA if name not in ("num_key_value_heads", "intermediate_size")}
OTHERS: dict[str, dict[str, Any]] = {  # differing from Llama in what a head, a position or a mask depends on
    "mistral": LLAMA | WINDOWS,
    "qwen2": LLAMA | {"use_sliding_window": True, "sliding_window": 60, "max_window_layers": 1},
    "qwen3": LLAMA,
    "gemma": LLAMA | {"head_dim": 8},
    "gemma2": LLAMA | WINDOWS | {"final_logit_softcapping": 2.0},
    "gemma3_text": LLAMA | WINDOWS | {"sliding_window_pattern": 2},
    "granite": LLAMA | {"logits_scaling": 3.0},
    "olmo2": LLAMA,
    "smollm3": LLAMA,
    "phi": LLAMA,
    "phi3": LLAMA,
    "opt": UNGROUPED | {"ffn_dim": 64, "word_embed_proj_dim": 32, "init_std": 0.2},
    "gpt_neox": LLAMA,
    "bloom": {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 2, "initializer_range": 0.2},
    "falcon": UNGROUPED | {"alibi": True},
}
CONFIGS = {
    "gpt2": GPT2,
    "tied": LlamaConfig(**LLAMA, tie_word_embeddings=True),
    "untied": LlamaConfig(**LLAMA, tie_word_embeddings=False),
}
Write = Callable[..., Path]


@pytest.fixture(scope="session")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Write a tiny language model as a folder, once."""
    known: dict[tuple[str, bool], Path] = {}

    def written(name: str = "gpt2", pad: bool = True) -> Path:
        if (name, pad) not in known:
            known[name, pad] = folder = tmp_path_factory.mktemp(name)
            padding = {"pad_token": "[PAD]"} if pad else {}
            PreTrainedTokenizerFast(
                tokenizer_object=tiny_tokenizer(), unk_token="[UNK]", eos_token="[SEP]", **padding
            ).save_pretrained(folder)
            assert ("pad_token" in json.loads((folder / "tokenizer_config.json").read_text())) == pad
            tokenizer = json.loads((folder / "tokenizer.json").read_text()) | {"post_processor": None}
            (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
            with torch.random.fork_rng():
                torch.manual_seed(0)
                told = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
                config = CONFIGS[name] if name in CONFIGS else AutoConfig.for_model(name, **OTHERS[name] | told)
                AutoModelForCausalLM.from_config(config).save_pretrained(folder)
        return known[name, pad]

    return written


def opened(folder: Path) -> TransformerBackbone:
    backbone = open_backbone(f"hf:{folder}", precision="fp32")
    assert isinstance(backbone, TransformerBackbone)
    return backbone


@torch.no_grad()
def alone(folder: Path, tokens: Sequence[int], answer: Sequence[int]) -> float:
    """The log-likelihood of an answer, by transformers, of one whole string."""
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    logits = network(torch.tensor([[*tokens, *answer]])).logits[0].log_softmax(dim=-1)
    return float(sum(logits[len(tokens) + place - 1, token] for place, token in enumerate(answer)))


def fitted_on(backbone: TransformerBackbone, data: Any, method: Prompt, seed: int = 0, **changes: Any) -> Prompted:
    fitted = method.fit(replace(tiny_bench(data, backbone, seed=seed), **changes))
    assert isinstance(fitted, Prompted)
    return fitted


@pytest.mark.parametrize("name", [*CONFIGS, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_answers_are_scored_as_whole_strings_are(name: str, write: Write) -> None:
    folder = write(name, pad=name != "tied")
    model = opened(folder).language_model()
    shared = "the film was good yes\n\na sad film no"
    contexts = [f"{shared}\n\n{text} :" for text in ("so warm", "it was a very long and cold film", "bad ")]
    answers = [[" y", " yes", " yes it is", " no", " no "], [" it"], [" cold", " warm and good"]]
    asked = prompt_tokens_of(model, contexts, answers, end="\n\n")
    (before,) = model.tokens([shared])
    found = log_likelihoods(model, [one.behind(len(before)) for one in asked], read_before(model, before))
    whole = log_likelihoods(model, asked)
    wanted = [[alone(folder, one.context, way) for way in one.continuations] for one in asked]
    for some in (found, whole):
        for scores, expected in zip(some, wanted, strict=True):
            assert scores == pytest.approx(expected, abs=1e-4)
    assert len({len(way) for one in asked for way in one.continuations}) > 3  # of one token, and of several
    assert begins_another(prompt_tokens_of(model, contexts[1:], answers[1:])[0].continuations) is False


@pytest.mark.parametrize("attention", ["ours", "eager"])
def test_answers_that_begin_alike_are_one_row_behind_their_prompt(attention: str, write: Write) -> None:
    folder = write("tied", pad=False)
    backbone = opened(folder)
    if attention == "eager":  # it takes no mask of ours: then each path is a row
        backbone = backbone.copy()
        backbone.module.set_attn_implementation("eager")  # type: ignore[operator]
    model = backbone.language_model()
    read: list[tuple[int, ...]] = []
    backbone.module.register_forward_pre_hook(
        lambda _, __, given: read.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    many = [" it is a film", " it is a cold film", " it is", " it was warm", " yes", " it is a cold one", " it"]
    asked = prompt_tokens_of(
        model, ["so :", "the film was good :", "a very bad film no"], [many, many, [" y"]], end="."
    )
    (before,) = model.tokens(["the"])
    for kept in (None, read_before(model, before)):
        read.clear()
        found = log_likelihoods(model, asked, kept)
        trees = [TokenTree.of(one.continuations) for one in asked]
        nodes, paths = len(trees[0].tokens), len(trees[0].paths)
        assert read[1:] == ([(2, nodes)] if attention == "ours" else [(2 * paths, max(map(len, trees[0].paths)))])
        assert nodes < sum(len(way) - 1 for way in asked[0].continuations) - 10
        for scores, one in zip(found, asked, strict=True):
            wanted = [alone(folder, [*(before if kept else []), *one.context], way) for way in one.continuations]
            assert scores == pytest.approx(wanted, abs=1e-4)


def test_spaces_before_an_answer_belong_to_it(write: Write) -> None:
    model = opened(write()).language_model()
    asked = prompt_tokens_of(model, ["a film: ", "a film:"], [["good"], [" good"]])
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("classification", {"shots": 2}),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("classification", {"shots": 0, "normalise": "tokens"}),
                ("choice", {"shots": 2}),
                ("choice", {"shots": 0, "normalise": "tokens"}),
            )
        ),
    ],
    ids=str,
)
def test_the_contract_of_methods(settings: dict[str, Any], kind: str, write: Write) -> None:
    check_method("prompt", settings, backbone=f"hf:{write()}", of_kinds=[kind])


@pytest.mark.slow
def test_the_contract_with_calibration(write: Write) -> None:
    for name in ("gpt2", "untied"):
        check_method("prompt", {"calibrate": "contextual"}, backbone=f"hf:{write(name)}", of_kinds=["classification"])


@pytest.mark.parametrize("pair", [False, True])
def test_logits_are_log_likelihoods_of_the_prompt_in_the_facts(pair: bool, write: Write) -> None:
    data, folder = tiny_dataset("classification", pair=pair), write("tied")
    fitted = fitted_on(opened(folder), data, Prompt(shots=3, template="input_output", normalise="characters"))
    told = fitted.facts
    assert [len(told["shots"]), told["shots_dropped"], told["words"]] == [3, 0, list(data.task.labels)]
    (example, *_), inputs = data.test.examples, data.test.examples[0].inputs
    asked = told["template"]["example"].format(**inputs)
    context = "\n\n".join([*(shot["text"] for shot in told["shots"]), asked])
    assert all(text in context for text in inputs.values())
    model = opened(folder).language_model()
    for label, logit in zip(data.task.labels, np.asarray(fitted.logits([example]))[0], strict=True):
        (one,) = prompt_tokens_of(model, [context], [[f" {label}"]])
        assert logit * len(f" {label}") == pytest.approx(alone(folder, one.context, one.continuations[0]), abs=1e-4)


def test_what_all_prompts_share_is_read_once(write: Write) -> None:
    data, backbone = tiny_dataset("classification"), opened(write())
    fitted = fitted_on(backbone, data, Prompt(shots=4, template="category"))
    bench = tiny_bench(data, backbone)
    Prompt(shots=4, template="category").fit(bench)
    asked, _ = fitted.tokenised(data.test.examples)
    whole = count_flops(lambda: log_likelihoods(backbone.language_model(), asked))[1]
    answering = count_flops(lambda: fitted.logits(data.test.examples))[1]
    once = fitted.facts["tokens_read_once"]
    assert once > 40
    assert answering < 0.4 * whole
    assert bench.tally.flops > 0  # the beginning is charged to the fit
    assert all(one.context[:once] == fitted.model.beginning for one in asked)


@pytest.mark.parametrize("settings", [{}, {"answer": "written"}], ids=str)
def test_the_price_of_a_prediction_counts_every_token_of_every_shot(settings: dict[str, Any], write: Write) -> None:
    data, backbone = tiny_dataset("classification"), opened(write())
    reader, prices, lengths = backbone.language_model(), [], []
    for shots in (0, 4, 8):
        fitted = fitted_on(backbone, data, Prompt(shots=shots, template="category", **settings))
        (one, *_), _ = fitted.tokenised(data.test.examples[:1])
        flops, grade = fitted.flops(data.test.examples[:1])
        prompt = reader.padded([one.context])
        whole = count_flops(lambda prompt=prompt: reader.read(*prompt))[1]
        assert grade == "counter" and flops > 0.9 * whole  # attention to tokens that come later is not counted twice
        prices.append(flops)
        lengths.append(len(one.context))
    assert lengths[1] > 2 * lengths[0] and prices[2] / prices[1] > 0.9 * lengths[2] / lengths[1]


def test_shots_are_of_train_balanced_and_drawn_by_their_seed(write: Write) -> None:
    data, backbone = tiny_dataset("classification"), opened(write())
    labels = {example.id: example.target for example in data.train.examples}

    def drawn(seed: int, **changes: Any) -> tuple[str, list[str]]:
        facts = fitted_on(backbone, data, Prompt(shots=4), seed, **changes).facts
        return facts["template"]["name"], [shot["id"] for shot in facts["shots"]]

    found = [drawn(seed) for seed in range(8)]
    for _, ids in found:
        assert len(set(ids)) == 4 and set(Counter(labels[name] for name in ids).values()) == {2}
    assert len({name for name, _ in found}) > 2 and len({tuple(ids) for _, ids in found}) == 8
    assert drawn(3) == found[3]
    other = [drawn(seed, held=("templates",)) for seed in range(8)]
    assert {name for name, _ in other} == {found[0][0]} and [ids for _, ids in other] == [ids for _, ids in found]
    assert [drawn(seed, held=("shots",))[1] for seed in (1, 2)] == [found[0][1]] * 2


def test_only_what_fits_into_the_context_is_read(write: Write) -> None:
    data, backbone = tiny_dataset("classification", rows=200), opened(write())
    fitted = fitted_on(backbone, data, Prompt(shots=100, template="category"))
    kept, dropped = len(fitted.facts["shots"]), fitted.facts["shots_dropped"]
    assert kept + dropped == 100 and 0 < kept < 100 and fitted.facts["validation_cut"] == 0
    asked, cut = fitted.tokenised(data.validation.examples)
    assert cut == 0 and LENGTH - 40 < max(one.most for one in asked) <= LENGTH
    long = [Example("long", {"text": "the film was " + "good " * n}) for n in (200, 1)]
    asked, cut = fitted.tokenised(long)
    assert cut == 1 and LENGTH - 5 < asked[0].most <= LENGTH
    assert np.isfinite(np.asarray(fitted.logits(long))).all()


def test_a_prompt_without_room_is_an_error(write: Write, tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(f'[text.long]\nexample = "{"film " * 400}{{text}}"\nanswer = " {{label}}"\n')
    data = tiny_dataset("classification")
    with pytest.raises(ConfigError, match="leaves no room"):
        fitted_on(opened(write()), data, Prompt(template=str(tmp_path / "long.toml")))


def test_calibration_is_by_texts_without_content(write: Write) -> None:
    data, backbone = tiny_dataset("classification"), opened(write())
    plain = fitted_on(backbone, data, Prompt(shots=2, template="listed"))
    fitted = fitted_on(backbone, data, Prompt(shots=2, template="listed", calibrate="contextual"))
    empty = [Example(text, {"text": text}) for text in CONTENT_FREE]
    scores = torch.from_numpy(np.asarray(plain.logits(empty)))
    expected = scores.softmax(dim=1).mean(dim=0).log().numpy()
    assert fitted.delta()["content_free"] == pytest.approx(expected)
    moved = np.asarray(plain.logits(data.test.examples)) - np.asarray(fitted.logits(data.test.examples))
    assert moved == pytest.approx(np.tile(expected, (len(moved), 1)))


def test_choices_are_scored_one_by_one(write: Write) -> None:
    data = tiny_dataset("choice")
    fitted = fitted_on(opened(write()), data, Prompt(shots=2))
    logits = fitted.logits(data.test.examples)
    assert isinstance(logits, Ragged) and logits.flat.shape == (len(flat(data.test.targets)), 1)
    right = {
        example.id: example.inputs["choices"][example.target.index(1)]
        for example in data.train.examples
        if example.target is not None
    }
    assert all(right[shot["id"]] in shot["text"] for shot in fitted.facts["shots"])


def test_probabilities_that_are_no_numbers_are_an_error(write: Write) -> None:
    backbone = opened(write()).copy()
    torch.nn.init.constant_(backbone.module.get_submodule("ln_f").bias, float("nan"))  # type: ignore[arg-type]
    with pytest.raises(IncompatibleModule, match="no numbers"):
        fitted_on(backbone, tiny_dataset("classification"), Prompt()).logits(
            tiny_dataset("classification").test.examples
        )


def test_a_file_of_templates_is_known_by_content_and_not_needed_later(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[text.mine]\nexample = "{text}!"\nanswer = " {label}."\nwords = { good = "yes", bad = "no" }\n')
    data, backbone, method = tiny_dataset("classification"), opened(write()), parse_method(f"prompt:template={path}")
    fitted = method.method.fit(tiny_bench(data, backbone))
    known = method.identity["template"]
    assert known.startswith("sha256-") and " yes." in "".join(shot["text"] for shot in fitted.facts["shots"])
    path.write_text(path.read_text().replace("!", "?"))
    assert method.identity["template"] != known
    path.unlink()
    kind: Kind = kinds.get("classification")
    restored = Prompt(template=known).restore(Setting(data.task, kind, backbone), {}, dict(fitted.facts))
    assert np.array_equal(flat(restored.logits(data.test.examples)), flat(fitted.logits(data.test.examples)))


def test_built_in_templates_are_five_and_more_of_each_form() -> None:
    found = read_templates(BUILT_IN)
    assert found.keys() == FORMS.keys()
    for listed in found.values():
        assert len([template for template in listed if not template.words]) >= 5
        assert len({template.name for template in listed}) == len(listed)


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ('[text.a]\nexample = "what?"\nanswer = " {label}"', ConfigError, r"lacks its field \{text\}"),
        ('[text.a]\nexample = "{text}"\nanswer = " label"', ConfigError, r"lacks its field \{label\}"),
        ('[pair.a]\nexample = "{text_a}"\nanswer = " {label}"', ConfigError, r"lacks its field \{text_b\}"),
        ('[choice.a]\nexample = "{text}"\nanswer = " {label}"', ConfigError, r"lacks its field \{choice\}"),
        ('[text.a]\nexample = "{text.upper}{text}"\nanswer = "{label}"', ConfigError, "a field that is not known"),
        ('[text.a]\nexample = "{text!r}"\nanswer = "{label}"', ConfigError, "a field that is not known"),
        ('[text.a]\nexample = "{text"\nanswer = "{label}"', ConfigError, "braces that do not match"),
        ('[text.a]\nexample = "{text}"\nanswr = "{label}"', UnknownName, "did you mean 'answer'"),
        ('[texts.a]\nexample = "{text}"', UnknownName, "did you mean 'text'"),
        ('[text]\nexample = "{text}"', ConfigError, "not a table of templates"),
        ('[text.a]\nexample = 1\nanswer = "{label}"', ConfigError, "not a template"),
    ],
)
def test_a_template_that_is_wrong_is_an_error(text: str, error: type, told: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(error, match=told) as found:
        read_templates(path)
    assert str(path) in str(found.value)


def test_a_stored_template_is_checked_as_a_file_is(write: Write) -> None:
    data, backbone = tiny_dataset("classification", pair=True), opened(write())
    facts = fitted_on(backbone, data, Prompt(shots=1)).facts
    setting = Setting(data.task, kinds.get("classification"), backbone)
    told = facts | {"template": facts["template"] | {"example": "{text_a.__class__} {text_b}"}}
    with pytest.raises(ConfigError, match="lacks its field"):
        Prompt().restore(setting, {}, told)


def test_it_says_where_it_does_not_fit(write: Write, tmp_path: Path) -> None:
    data, card = tiny_dataset("classification"), opened(write()).card
    assert Prompt().unfit(data.task, card) == "" == Prompt(template="category").unfit(data.task, None)
    assert "no language model with its head" in Prompt().unfit(data.task, replace(card, continues=False))
    assert "shots" in Prompt(shots=-1).unfit(data.task, card)
    assert "contextual" in Prompt(calibrate="no").unfit(data.task, card)
    assert "tokens" in Prompt(normalise="words").unfit(data.task, card)
    assert "unknown template" in Prompt(template="categroy").unfit(data.task, card)
    assert "tagging" in Prompt().unfit(tiny_dataset("tagging").task, card)
    assert "likelihood, written" in Prompt(answer="spoken").unfit(data.task, card)
    assert "are for likelihoods" in Prompt(answer="written", normalise="tokens").unfit(data.task, card)
    beams = tiny_dataset("generation").task.resolved(beams=4)
    assert "writes greedily" in Prompt().unfit(beams, card) and Prompt().unfit(beams, None) == ""
    told = tiny_dataset("generation").task.resolved(source_prefix="sum up: ")
    assert "leave source_prefix out" in Prompt().unfit(told, card)
    assert "calibration" in Prompt(calibrate="contextual").unfit(tiny_dataset("choice").task, card)
    with pytest.raises(ConfigError, match="no word for a label"):
        Prompt(template="question_type").unfit(data.task, card)
    (tmp_path / "pairs.toml").write_text('[pair.a]\nexample = "{text_a} {text_b}"\nanswer = " {label}"\n')
    with pytest.raises(ConfigError, match=r"expected: +\[text.NAME\]"):
        Prompt(template=str(tmp_path / "pairs.toml")).unfit(data.task, card)


def test_a_run_says_what_was_read_and_by_which_draws(write: Write, tmp_path: Path) -> None:
    settings: Any = {"backbone": f"hf:{write()}", "runs": str(tmp_path / "runs"), "precision": "fp32"}
    run = gw.train(write_toy(tmp_path), method="prompt:shots=60:template=category", **settings)
    (line,) = (line for line in run_lines(run.folder) if line.startswith("prompt "))
    assert "template 'category'" in line and "more did not fit into the context" in line
    receipt = read_json(run.folder / "receipt.json")
    assert receipt["randomness"]["derived"]["shots"] == derive(0, "shots")
    spec = read_spec(run.folder)
    assert record_differences(run.folder, spec, receipt) == []
    receipt["randomness"]["derived"]["templates"] += 1
    assert [found.about for found in record_differences(run.folder, spec, with_seal(receipt))] == ["seed"]


def test_a_network_without_its_head_is_no_language_model(write: Write, tmp_path: Path) -> None:
    for name in ("gpt2", "untied"):
        folder = tmp_path / name
        tokenizer = PreTrainedTokenizerFast.from_pretrained(write(name))
        tokenizer.save_pretrained(folder)
        AutoModel.from_pretrained(write(name)).save_pretrained(folder)
        assert opened(folder).card.continues == (name == "gpt2")  # whose head is its embedding
    assert not open_backbone("tiny_text", precision="fp32").card.continues
    assert not open_backbone(f"random:hf:{write('untied')}", precision="fp32").card.continues
