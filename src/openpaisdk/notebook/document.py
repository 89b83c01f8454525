"""A notebook as data: read it, see that it is Python, put parameters in."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openpaisdk.errors import NotFoundError, UsageError

INJECTED = "injected-parameters"


class Notebook:
    """One `.ipynb` file of format 4; cells keep everything that is in them."""

    def __init__(self, data: dict[str, Any], source: str = "<notebook>") -> None:
        self.data = data
        self.source = source

    @classmethod
    def read(cls, path: str | Path) -> Notebook:
        path = Path(path)
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise NotFoundError(f"no notebook {path}", hint="give the path of an .ipynb file") from None
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read: {error.strerror}", hint="give the path of an .ipynb file"
            ) from None
        except ValueError as error:
            raise UsageError(
                f"{path} is not a notebook: {error}", hint="an .ipynb file is JSON text"
            ) from None
        if not isinstance(data, dict) or not isinstance(data.get("cells", []), list):
            raise UsageError(f"{path} is not a notebook: it has no cells", hint="give an .ipynb file")
        if data.get("nbformat") != 4 or "cells" not in data:
            raise UsageError(
                f"{path} has notebook format {data.get('nbformat')!r}, 4 is needed",
                hint="open it in Jupyter and save it again",
            )
        return cls(data, str(path))

    @property
    def cells(self) -> list[dict[str, Any]]:
        cells: list[dict[str, Any]] = self.data["cells"]
        return cells

    def require_python(self) -> None:
        """A kernel of another language cannot be a job of ours."""
        metadata = self.data.get("metadata", {})
        spec = metadata.get("kernelspec", {})
        language = spec.get("language") or metadata.get("language_info", {}).get("name") or "python"
        if str(language).lower() not in ("python", "ipython", "python3"):
            raise UsageError(
                f"{self.source} uses the kernel {spec.get('display_name', language)!r}, which is not Python",
                hint="choose a Python kernel in the notebook and save it",
            )

    def with_parameters(self, values: Mapping[str, Any]) -> Notebook:
        """A copy with the values in a new cell after the one tagged `parameters`, or before all code."""
        if not values:
            return self
        for name in values:
            if not name.isidentifier():
                raise UsageError(
                    f"--param {name}: not a name that Python takes", hint="write it as --param lr=0.01"
                )
        twin = Notebook(copy.deepcopy(self.data), self.source)
        twin.data["cells"] = [cell for cell in twin.cells if INJECTED not in tags(cell)]
        injected: dict[str, Any] = {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {"tags": [INJECTED]},
            "outputs": [],
            "source": "# Parameters\n" + "".join(f"{name} = {literal(values[name])}\n" for name in values),
        }
        if (twin.data.get("nbformat_minor") or 0) >= 5:
            injected["id"] = INJECTED
        twin.cells.insert(twin._place_for_parameters(), injected)
        return twin

    def _place_for_parameters(self) -> int:
        for number, cell in enumerate(self.cells):
            if "parameters" in tags(cell):
                return number + 1
        return next((number for number, cell in enumerate(self.cells) if cell.get("cell_type") == "code"), 0)

    def text(self) -> str:
        return json.dumps(self.data, indent=1, ensure_ascii=False) + "\n"


def source(cell: dict[str, Any]) -> str:
    text = cell.get("source", "")
    return "".join(text) if isinstance(text, list) else str(text)


def tags(cell: dict[str, Any]) -> list[str]:
    found: list[str] = cell.get("metadata", {}).get("tags", [])
    return found


def literal(value: Any) -> str:
    """The value as Python text; what has no such text, such as an object, is refused."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    raise UsageError(
        f"a parameter cannot be a {type(value).__name__}: {value!r}",
        hint="give numbers, text, true and false, lists and mappings of them",
    )
