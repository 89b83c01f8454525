"""What a notebook imports of `openpaisdk`, for jobs whose Python lacks it: one copy runs in both places.

Inside a job the submitting cell does nothing, so its names only have to be there.
"""

import importlib.util
import os

_INIT = '''"""Stands in for openpaisdk inside a job: `pip install openpaisdk` brings the whole of it."""

from openpai.runtime.only import register as load_ipython_extension
from openpai.runtime.place import current

__install__ = "openpaisdk"


def in_job_container():
    return current().in_job


def submit_notebook(*args, **kwargs):
    return None


def __getattr__(name):
    raise AttributeError(
        "this job's Python lacks openpaisdk, and what stands in for it has no {!r}; "
        "submit with pip_requirements=['openpaisdk'] or an image that has it".format(name)
    )
'''
FILES = {
    "__init__.py": _INIT,
    "core.py": "from openpaisdk import in_job_container\n",
    "notebook.py": "from openpaisdk import submit_notebook\n",
}


def path_for(folder: str) -> "str | None":
    """The folder to add to the path of programs in this job, made below `folder`; None if nothing lacks."""
    if importlib.util.find_spec("openpaisdk") is not None:
        return None
    root = os.path.join(folder, ".stand-in")
    package = os.path.join(root, "openpaisdk")
    os.makedirs(package, exist_ok=True)
    for name, text in FILES.items():
        with open(os.path.join(package, name), "w") as file:
            file.write(text)
    return root
