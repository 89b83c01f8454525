"""The commands of `opai`: which groups and verbs there are, and which module has each; loads nothing else."""

from __future__ import annotations

GROUPS: dict[str, str] = {
    "job": "describe, submit, watch and stop jobs",
    "cluster": "the clusters you know, and what is free on them",
    "default": "values you do not want to type every time",
    "output": "what a job left behind and what it printed",
    "storage": "files on the cluster's storage, or at any address",
    "server": "the cluster in the box: start, stop, look after",
    "completion": "completion of commands in your shell",
}

# group -> verb -> (module with <verb>_arguments and <verb>_run, one line of help), in the order shown.
TABLE: dict[str, dict[str, tuple[str, str]]] = {
    "job": {
        "sub": ("openpaisdk.commands.job_sub", "submit one command as a job"),
        "fast": ("openpaisdk.commands.job_sub", "the same as `sub`"),
        "submit": (
            "openpaisdk.commands.job_submit",
            "submit job files, or the job made with `create` and `task`",
        ),
        "create": ("openpaisdk.commands.job_draft", "begin a job step by step"),
        "task": ("openpaisdk.commands.job_draft", "add a task role to the job begun with `create`"),
        "validate": ("openpaisdk.commands.job_validate", "check job files and show every problem"),
        "list": ("openpaisdk.commands.job_list", "jobs, or one job's detail, config or ssh addresses"),
        "status": ("openpaisdk.commands.job_status", "state of one or several jobs"),
        "logs": ("openpaisdk.commands.job_logs", "what a job printed, as it prints it with -f"),
        "wait": (
            "openpaisdk.commands.job_wait",
            "wait until jobs have ended; the exit code is their outcome",
        ),
        "why": ("openpaisdk.commands.job_why", "why a job waits or failed, and what to do"),
        "stop": ("openpaisdk.commands.job_control", "stop jobs"),
        "clone": ("openpaisdk.commands.job_control", "submit a job again under a new name"),
        "resubmit": (
            "openpaisdk.commands.job_resubmit",
            "the same job again with other resources, here or elsewhere",
        ),
        "notebook": ("openpaisdk.commands.job_notebook", "submit a notebook"),
        "connect": ("openpaisdk.commands.job_notebook", "open the Jupyter of an interactive notebook job"),
        "delete": ("openpaisdk.commands.job_control", "delete finished jobs and their files"),
        "exec": ("openpaisdk.commands.job_shell", "run a command inside a running task"),
        "ssh": ("openpaisdk.commands.job_shell", "open a shell inside a running task"),
        "signal": ("openpaisdk.commands.job_signal", "ask the program inside a job for a checkpoint"),
    },
    "cluster": {
        "list": ("openpaisdk.commands.cluster", "the clusters you know"),
        "add": ("openpaisdk.commands.cluster", "add a cluster, or change one"),
        "remove": ("openpaisdk.commands.cluster", "forget a cluster"),
        "select": ("openpaisdk.commands.cluster", "make a cluster the default one"),
        "resources": (
            "openpaisdk.commands.cluster_resources",
            "virtual clusters with what is used and what there is",
        ),
    },
    "default": {
        "add": ("openpaisdk.commands.default", "set default values"),
        "list": ("openpaisdk.commands.default", "values in force and where each comes from"),
        "remove": ("openpaisdk.commands.default", "forget default values"),
    },
    "output": {
        "list": ("openpaisdk.commands.output", "files that a job left; the last job without -j"),
        "download": ("openpaisdk.commands.output", "fetch them, all where none is named"),
        "peek": ("openpaisdk.commands.output", "what a job printed, or the script it was given"),
    },
    "storage": {
        "list": ("openpaisdk.commands.storage", "what a folder holds; the workspace without a path"),
        "status": ("openpaisdk.commands.storage", "size, time and checksum of a file or folder"),
        "upload": ("openpaisdk.commands.storage", "copy a file or folder there; repeated, it goes on"),
        "download": ("openpaisdk.commands.storage", "copy a file or folder here; repeated, it goes on"),
        "delete": ("openpaisdk.commands.storage", "delete files, and folders with -r"),
        "mkdir": ("openpaisdk.commands.storage", "make folders"),
    },
    "server": {
        "start": ("openpaisdk.commands.server", "start it"),
        "stop": ("openpaisdk.commands.server", "stop it; running tasks go on"),
        "status": ("openpaisdk.commands.server", "process, address, data folder, launcher and load"),
        "logs": ("openpaisdk.commands.server", "what the server itself wrote"),
        "reset": ("openpaisdk.commands.server", "stop it and delete all its jobs and files"),
    },
    "completion": {
        "bash": ("openpaisdk.commands.completion", "script for bash"),
        "zsh": ("openpaisdk.commands.completion", "script for zsh"),
        "fish": ("openpaisdk.commands.completion", "script for fish"),
    },
}

# A second name for a verb -> the verb whose functions serve it.
SAME_AS: dict[tuple[str, str], str] = {("job", "fast"): "sub"}
