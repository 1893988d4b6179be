"""Methods as a person names them."""

from __future__ import annotations

from typing import Literal

import pytest

from graftwork.core.configured_methods import configured, configured_from, method_from_config, of_a, parse_method
from graftwork.errors import ConfigError, UnknownName
from graftwork.methods.adapter import Adapter
from graftwork.methods.lora import Lora


def test_a_name_alone_is_its_defaults() -> None:
    made = parse_method("adapter")
    assert made.method == Adapter() and made.label == "adapter"
    assert made.config == {
        "name": "adapter", "version": Adapter.VERSION, "size": 64, "placement": "houlsby",
        "learning_rate": Adapter().learning_rate,
    }  # fmt: skip


def test_hyper_parameters_are_read_as_their_type() -> None:
    made = parse_method(" adapter:size=32:placement=pfeiffer:learning_rate=2e-4 ")
    assert made.method == Adapter(size=32, placement="pfeiffer", learning_rate=2e-4)
    assert made.label == "adapter:size=32:placement=pfeiffer:learning_rate=0.0002"
    assert parse_method("lora:alpha=8").method == Lora(alpha=8.0)


def test_what_was_named_is_known_be_it_the_default() -> None:
    assert parse_method("lora").given == frozenset()
    assert parse_method("lora:rank=8:alpha=16").given == {"rank", "alpha"}


def test_the_label_names_only_what_differs() -> None:
    assert parse_method("lora:rank=8:alpha=16").label == "lora"
    assert configured("lora", {"rank": 4}).label == "lora:rank=4"


def test_a_config_is_the_method_again() -> None:
    for words in ("lora:rank=4", "majority", "adapter:size=3"):
        made = parse_method(words)
        assert method_from_config(made.config) == made.method


def test_a_hyper_parameter_that_came_later_leaves_the_runs_there_were_their_ids() -> None:
    before = {"name": "ulmfit", "version": 1, "learning_rate": 5e-4, "divisor": 2.6, "cut_frac": 0.1, "ratio": 32.0}
    assert parse_method("ulmfit").config == before
    assert parse_method("ulmfit:schedule=slanted").config == before
    made = parse_method("ulmfit:schedule=constant")
    assert made.config == before | {"schedule": "constant"} and made.label == "ulmfit:schedule=constant"
    assert method_from_config(made.config) == made.method


def test_a_method_says_itself_where_it_stands_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    def labels(place: Literal["BOARD", "LADDER", "CURVE"]) -> set[str]:
        return {item.label for item in of_a(place)}

    plain = {"majority", "tfidf_svm", "most_frequent_tag", "perceptron_tagger", "bm25", "ngram_window"}
    plain |= {"abbreviation_rule", "colour_histogram", "log_mel", "copy_source", "first_sentence", "translation_memory"}
    top_layers = {"top_layers:k=1", "top_layers", "top_layers:k=3"}
    assert labels("LADDER") == plain | top_layers | {"linear_probe", "adapter", "full", "cross_encoder:by=full"}
    assert labels("CURVE") == plain | {"linear_probe", "prototype", "contrastive", "full"}
    assert "lora" in labels("BOARD") and "contrastive" not in labels("BOARD")
    for place in ("LADDER", "CURVE", "BOARD"):
        monkeypatch.setattr(Lora, place, ({"rank": 2}, {"rank": 4}), raising=False)
        assert {"lora:rank=2", "lora:rank=4"} <= labels(place) and "lora" not in labels(place)


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ("lorra", UnknownName, r"unknown method 'lorra'[\s\S]*did you mean 'lora'\?"),
        ("", UnknownName, "unknown method ''"),
        ("lora,adapter", UnknownName, "unknown method"),
        ("lora:rnak=4", UnknownName, r"unknown hyper-parameter of lora 'rnak'[\s\S]*did you mean 'rank'\?"),
        ("majority:size=4", UnknownName, "unknown hyper-parameter of majority 'size'"),
        ("lora:rank", ConfigError, r"needs a value[\s\S]*rank=VALUE"),
        ("lora:rank=4:rank=8", ConfigError, "lora: rank is set twice"),
        ("lora:rank=four", ConfigError, r"lora: rank must be a whole number[\s\S]*got: +'four'"),
        ("lora:rank=4.5", ConfigError, "rank must be a whole number"),
        ("lora:rank=", ConfigError, r"rank must be a whole number[\s\S]*got: +''"),
        ("lora:alpha=much", ConfigError, r"alpha must be a finite number[\s\S]*'much'"),
        ("lora:alpha=nan", ConfigError, "alpha must be a finite number"),
        ("lora:learning_rate=inf", ConfigError, "learning_rate must be a finite number"),
        ("full:learning_rate=0", ConfigError, "learning_rate must be above 0"),
        ("full:learning_rate=-1", ConfigError, "learning_rate must be above 0"),
    ],
)
def test_mistakes_are_named_and_the_nearest_is_suggested(words: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_method(words)


def test_a_stored_method_of_another_version_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"has changed since[\s\S]*version 7[\s\S]*train it again"):
        method_from_config({**parse_method("lora").config, "version": 7})


def test_what_an_earlier_version_stored_is_restored_if_the_method_says_so() -> None:
    probe = parse_method("linear_probe")
    over = parse_method("no_transfer:by=linear_probe")
    for made in (probe, over):
        assert method_from_config({**made.config, "version": made.config["version"] - 1}) == made.method
    with pytest.raises(ConfigError, match="has changed since"):
        method_from_config({**probe.config, "version": 0})


def test_what_follows_by_belongs_to_the_method_below() -> None:
    made = parse_method("no_transfer:by=adapter:size=8:placement=pfeiffer")
    assert made.config["by"] == "adapter:size=8:placement=pfeiffer"
    assert made.label == "no_transfer:by=adapter:size=8:placement=pfeiffer"
    assert configured_from(made.config) == made
    with pytest.raises(UnknownName, match="hyper-parameter of no_transfer 'size'"):
        parse_method("no_transfer:size=8:by=adapter")


def test_identity_is_the_configuration_where_that_says_all() -> None:
    made = parse_method("lora:rank=4")
    assert made.identity == made.config
