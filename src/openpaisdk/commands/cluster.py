"""`opai cluster list|add|remove|select`: the clusters a person knows."""

from __future__ import annotations

import sys

from openpaisdk.commands.result import Column, Result, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.config import ClusterConfig


def list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--name", action="store_true", help="only the aliases")


def list_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import get_cluster, load_clusters

    known = load_clusters()
    if args.cluster_alias:
        known = {args.cluster_alias: get_cluster(args.cluster_alias)}
    if args.name:
        return Result(list(known))
    chosen = _chosen()
    rows = [
        {"alias": alias, **config.as_dict(), "default": alias == chosen} for alias, config in known.items()
    ]
    view = View(
        "table",
        columns=(
            Column("ALIAS", "alias"),
            Column("ADDRESS", "pai_uri"),
            Column("USER", "user"),
            Column("LOGIN", _login),
            Column("DEFAULT", lambda row: "*" if row["default"] else ""),
        ),
        name="alias",
        empty="no clusters are defined; jobs run on the local one. Add yours with `opai cluster add`",
    )
    return Result(rows, view)


def _login(row: dict[str, Any]) -> str:
    return "token" if row.get("token") else "password" if row.get("passwd") else ""


def _chosen() -> str | None:
    from openpaisdk.config import get_cluster
    from openpaisdk.errors import OpenPAIError

    try:
        return get_cluster(None).alias
    except OpenPAIError:
        return None


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("alias", nargs="?", metavar="ALIAS", help="what you call it (or -a ALIAS)")
    parser.add_argument("--pai-uri", metavar="ADDRESS", help="address, such as https://pai.example.org")
    parser.add_argument("--user", metavar="NAME", help="your user name there")
    parser.add_argument(
        "--token", action="store_true", help="ask for an application token instead of a password"
    )
    parser.add_argument("--token-stdin", action="store_true", help="read the token from standard input")
    parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    parser.add_argument("--hdfs-web-uri", metavar="ADDRESS", help="WebHDFS address of its storage")
    parser.add_argument("--workspace", metavar="ADDRESS", help="storage folder for code and outputs")
    parser.add_argument("--ca-file", metavar="FILE", help="certificate authority of its TLS certificate")
    parser.add_argument("--no-verify", action="store_true", help="do not check its TLS certificate")
    parser.add_argument("--no-check", action="store_true", help="save it without trying the connection")
    parser.epilog = (
        "The password or token is asked for without echo, or taken from OPAI_PASSWD or OPAI_TOKEN, and kept\n"
        "in a file that only you can read. A command line is no place for it: others on the machine see it."
    )


def add_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import ClusterConfig, load_clusters, save_cluster
    from openpaisdk.errors import UsageError

    alias = args.alias or args.cluster_alias
    if not alias:
        raise UsageError(
            "the cluster needs a name", hint="opai cluster add ALIAS --pai-uri ADDRESS --user NAME"
        )
    old = load_clusters().get(alias) or ClusterConfig(alias)
    if not (args.pai_uri or old.pai_uri):
        raise UsageError(
            f"the address of cluster `{alias}` is missing", hint="give it with --pai-uri ADDRESS"
        )
    address = args.pai_uri or old.pai_uri
    config = ClusterConfig(
        alias,
        address if "://" in address else f"http://{address}",
        user=args.user or old.user,
        passwd=old.passwd,
        token=old.token,
        hdfs_web_uri=args.hdfs_web_uri or old.hdfs_web_uri,
        verify=False if args.no_verify else _absolute(args.ca_file) or old.verify,
        workspace=args.workspace or old.workspace,
        extra=old.extra,
    )
    _take_credentials(args, config, context)
    if not args.no_check:
        _try(config)
    save_cluster(config)
    context.say(f"cluster {alias} saved" + ("" if args.no_check else "; the connection works"))
    return Result({"alias": alias, **config.as_dict()}, View("nothing", name="alias"))


def _absolute(path: str | None) -> str | None:
    """Saved for commands that are typed in other folders."""
    from pathlib import Path

    return str(Path(path).expanduser().absolute()) if path else None


def _take_credentials(args: Namespace, config: ClusterConfig, context: Context) -> None:
    import os

    from openpaisdk.errors import UsageError

    from_environment = None if args.password_stdin or args.token else os.environ.get("OPAI_TOKEN")
    if args.token or args.token_stdin or from_environment:
        if args.token_stdin:
            config.token = sys.stdin.readline().strip()
        else:
            config.token = from_environment or context.ask_secret("token")
        config.passwd = None
        return
    if not config.user and not config.token:
        raise UsageError(
            f"the user name on cluster `{config.alias}` is missing", hint="--user NAME, or --token"
        )
    if args.password_stdin:
        config.passwd, config.token = sys.stdin.readline().rstrip("\r\n"), None
    elif os.environ.get("OPAI_PASSWD"):
        config.passwd, config.token = os.environ["OPAI_PASSWD"], None
    elif args.user or not (config.passwd or config.token):
        config.passwd, config.token = context.ask_secret("password"), None


def _try(config: ClusterConfig) -> None:
    """Log in once and ask for something that needs the login."""
    from openpaisdk.core import Cluster
    from openpaisdk.errors import OpenPAIError

    try:
        Cluster(config).virtual_clusters()
    except OpenPAIError as error:
        error.hint = f"{error.hint or 'check address, user and password'}; --no-check saves it all the same"
        raise


def remove_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("alias", nargs="*", metavar="ALIAS", help="which to forget (or -a ALIAS)")


def remove_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import load_clusters, remove_cluster

    aliases = _aliases(args, list(load_clusters()))
    for alias in aliases:
        remove_cluster(alias)
        _no_longer_default(alias)
        context.say(f"cluster {alias} removed")
    return Result(aliases, View("nothing"))


def _no_longer_default(alias: str) -> None:
    """A default that names a removed cluster would make every command fail."""
    from openpaisdk.config import list_defaults, project_file, remove_default, user_file

    for source, user_wide in ((project_file(), False), (user_file(), True)):
        row = {"name": "cluster-alias", "value": alias, "source": source}
        if row in list_defaults():
            remove_default("cluster-alias", user_wide)


def select_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("alias", nargs="?", metavar="ALIAS", help="which one (or -a ALIAS)")


def select_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import load_clusters, select

    alias = _aliases(args, list(load_clusters()))[0]
    source = select(alias)
    context.say(f"cluster {alias} is now the default one, says {source}")
    return Result({"alias": alias, "source": source}, View("nothing", name="alias"))


def _aliases(args: Namespace, known: list[str]) -> list[str]:
    """Those named, else the only one there is."""
    from openpaisdk.errors import UsageError

    named = [args.alias] if isinstance(args.alias, str) else list(args.alias or ())
    found = named or ([args.cluster_alias] if args.cluster_alias else known if len(known) == 1 else [])
    if not found:
        raise UsageError("which cluster?", hint=f"known are: {', '.join(known) or 'none'}")
    return found
