"""`python -m graftwork` is `graft`."""

from __future__ import annotations

import sys

from graftwork.cli.main import main

sys.exit(main())
