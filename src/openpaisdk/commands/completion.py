"""`opai completion bash|zsh|fish`: the script that lets a shell ask `opai __complete` for candidates."""

from __future__ import annotations

from openpaisdk.commands.result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from openpaisdk.commands.context import Context

BASH = r"""_opai_complete() {
    local IFS=$'\n'
    COMPREPLY=($(opai __complete "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null))
    if [ "${#COMPREPLY[@]}" -eq 1 ] && [ "${COMPREPLY[0]%=}" != "${COMPREPLY[0]}" ]; then
        compopt -o nospace
    fi
}
complete -o default -F _opai_complete opai
"""

ZSH = r"""#compdef opai
_opai() {
    local -a found
    found=("${(@f)$(opai __complete "$((CURRENT - 1))" "${words[@]}" 2>/dev/null)}")
    found=("${(@)found:#}")
    if (( ${#found} )); then
        compadd -Q -a found
    else
        _files
    fi
}
if [ "$funcstack[1]" = "_opai" ]; then
    _opai "$@"
else
    compdef _opai opai
fi
"""

FISH = r"""function __opai_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    opai __complete (count $before) $before "$current" 2>/dev/null
end
complete -c opai -a '(__opai_complete)'
"""


def bash_arguments(parser: ArgumentParser) -> None:
    parser.epilog = 'Put this line into ~/.bashrc:\n  eval "$(opai completion bash)"'


def bash_run(args: Namespace, context: Context) -> Result:
    return Result(BASH)


def zsh_arguments(parser: ArgumentParser) -> None:
    parser.epilog = 'Put this line into ~/.zshrc, after compinit:\n  eval "$(opai completion zsh)"'


def zsh_run(args: Namespace, context: Context) -> Result:
    return Result(ZSH)


def fish_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Run once:\n  opai completion fish > ~/.config/fish/completions/opai.fish"


def fish_run(args: Namespace, context: Context) -> Result:
    return Result(FISH)
