"""`python -m openpaisdk.cli` is `opai`."""

from __future__ import annotations

import sys

from openpaisdk.cli.main import main

sys.exit(main())
