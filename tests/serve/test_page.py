"""The page in a real browser: Chromium by Playwright, over canned answers and the page's own headers."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from graftwork import units
from graftwork.serve.pages import HEADERS, TYPES
from tests_page_canned import ANSWERS
