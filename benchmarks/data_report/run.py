"""Report on every data set of a collection and keep the findings: `python run.py --data FOLDER [NAME …]`."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import graftwork as gw
from graftwork.errors import GraftworkError
from graftwork.io.files import write_json
from graftwork.machine.environment import environment

HERE = Path(__file__).parent.absolute()
SETTINGS: Mapping[str, Mapping[str, Any]] = {  # settings that do not follow from the names of files and columns
    "stsb": {"kind": "regression"},
    "conll2000": {"kind": "tagging"},
    "ncbi_disease": {"kind": "tagging"},
    "ud_ewt": {"kind": "tagging", "label": "tags"},
    "copa": {"kind": "choice"},
    "squad1": {"kind": "span"},
    "flowers5": {"image": "file"},
    "free_spoken_digits": {"sound": "file"},
}
SPLITS = {
    "dev": "validation", "test": "test", "val_list": "validation", "test_list": "test", "dev_choices": "validation",
}  # fmt: skip
MAIN = ("train_choices", "train", "train_list", "all", "dev", "dev_matched")  # the first that exists is train
SUFFIXES = (".tsv", ".conll", ".jsonl")
CUES = 5  # strongest cues kept per side


def task(name: str) -> gw.Task | None:
    """Return the data set with its own splits, the missing ones drawn; None for text without labels."""
    folder = Path(name)
    if (folder / "train").is_dir():
        return gw.Task.from_file(folder / "train", name=name, test=folder / "val")
    named = {path.name.split(".")[0]: path for path in sorted(folder.iterdir()) if set(path.suffixes) & set(SUFFIXES)}
    chosen = SETTINGS.get(name, {})
    choices = chosen.get("kind") == "choice"
    files = {stem: path for stem, path in named.items() if stem.endswith("_choices") == choices}
    main = next((stem for stem in MAIN if stem in files), None)
    if main is None or name.startswith("lm_") or name == "abbr_med1250":
        return None
    given = {SPLITS[stem]: path for stem, path in files.items() if stem in SPLITS and stem != main}
    return gw.Task.from_file(files[main], name=name, **given, **chosen)


def found_in(asked: gw.Task) -> dict[str, Any]:
    """Return the counts of a report and its strongest cues, without any text of the data."""
    start = time.process_time()
    report = gw.data_report(asked)
    seconds = time.process_time() - start
    near, cues = report.get("near_duplicates"), report.get("cues", {})
    sides = dict.fromkeys(cue["side"] for cue in cues.get("strongest", []))
    return {
        "kind": asked.kind,
        "processor_seconds": seconds,
        "rows": report["rows"],
        "classes": len(report["classes"].get("train", {})),
        "rare_classes": len(report.get("rare_classes", {})),
        "duplicates_within": report["duplicates_within"],
        "duplicates_across": report["duplicates_across"]["rows"],
        "near_within": near and near["within"],
        "near_across": near and near["across"]["rows"],
        "conflicts": report["conflicts"]["rows"],
        "near_conflicts": near and near["conflicts"]["rows"],
        "without_letters": report["without_letters"],
        "sorted": report["sorted"],
        "order": report.get("order"),
        "words": report["words"],
        "cues": cues.get("words"),
        "strongest_cues": [
            cue for side in sides for cue in [one for one in cues["strongest"] if one["side"] == side][:CUES]
        ],
    }


def main() -> None:
    """Write a file per data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    chosen = parser.parse_args()
    os.chdir(chosen.data)
    for name in chosen.names or sorted(path.name for path in Path().iterdir() if path.is_dir()):
        asked = task(name)
        if asked is None:
            continue
        try:
            found: dict[str, Any] = {"status": "ok"} | found_in(asked)
        except GraftworkError as error:
            found = {"status": "failed", "error": error.what}
        result = {"format": 1, "data": name} | found | {"environment": environment()}
        write_json(HERE / "results" / f"{name}.json", result)
        print(f"{name}: {found['status']}, {found.get('processor_seconds', 0):.1f} s", flush=True)


if __name__ == "__main__":
    main()
