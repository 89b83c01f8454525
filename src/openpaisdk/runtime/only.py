"""Cells for some places only: `%%only batch` at the head of a cell, in notebooks and scripts made of them."""

from .place import PLACES, current

HEAD = "%%only"


def places(words: "list[str]") -> "list[str]":
    """The places or task roles that a `%%only` line names."""
    found = [word.strip(",") for word in words if word.strip(",")]
    if not found:
        raise ValueError("%%only needs a place: one or more of {}, or a task role".format(", ".join(PLACES)))
    return found


def applies(wanted: "list[str]") -> bool:
    """Whether this is one of the places, or one of the task roles, that are named."""
    place = current()
    return place.kind in wanted or bool(place.role and place.role in wanted)


def choose(lines: "list[str]") -> "list[str]":
    """For IPython: a cell that begins with `%%only` is its body where it applies, and a note elsewhere."""
    if not lines or not lines[0].startswith(HEAD):
        return lines
    wanted = places(lines[0][len(HEAD) :].split())
    if applies(wanted):
        # The empty line keeps line numbers right; another `%%` must stand first to be seen.
        return lines[1:] if lines[1:] and lines[1].startswith("%%") else ["\n"] + lines[1:]
    return [
        "print('not run: this is {}, the cell is for {} only')\n".format(current().kind, ", ".join(wanted))
    ]


def register(shell) -> None:  # type: ignore[no-untyped-def]
    """Lets a shell know `%%only`; once is enough, again is fine."""
    steps = shell.input_transformers_cleanup
    steps[:] = [step for step in steps if getattr(step, "__name__", "") != "choose"] + [choose]
