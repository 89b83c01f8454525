"""The clusters people know: `clusters.json`, the environment, and the built-in `local` one."""

from __future__ import annotations

import os

from openpaisdk.config.defaults import add_defaults, nearest, project_file, setting, user_file
from openpaisdk.config.files import home_path, read_json, update_json
from openpaisdk.errors import ConfigError, NotFoundError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOCAL = "local"
# The alias of a cluster that OPAI_PAI_URI and its companions describe.
ENVIRONMENT = "environment"
MASK = "******"
_FIELDS = ("pai_uri", "user", "passwd", "token", "hdfs_web_uri", "verify", "workspace")
# The TypeScript client keeps a list in the same file, with words of its own.
_OTHER_WORDS = {"username": "user", "password": "passwd"}


class ClusterConfig:
    """One cluster: where it is, who I am there, and how much to trust it."""

    __slots__ = (
        "alias",
        "extra",
        "hdfs_web_uri",
        "pai_uri",
        "passwd",
        "token",
        "user",
        "verify",
        "workspace",
    )

    def __init__(
        self,
        alias: str,
        pai_uri: str = "",
        *,
        user: str | None = None,
        passwd: str | None = None,
        token: str | None = None,
        hdfs_web_uri: str | None = None,
        verify: bool | str = True,
        workspace: str | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.alias = alias
        self.pai_uri = pai_uri
        self.user = user
        self.passwd = passwd
        self.token = token
        self.hdfs_web_uri = hdfs_web_uri
        self.verify = verify
        self.workspace = workspace
        self.extra = dict(extra or {})

    @property
    def is_local(self) -> bool:
        """Whether this is the embedded cluster, whose address is known only once it runs."""
        return self.alias == LOCAL and not self.pai_uri

    def as_dict(self, mask: bool = True) -> dict[str, Any]:
        """The entry as `clusters.json` keeps it, without the alias; password and token hidden unless told."""
        found: dict[str, Any] = {"pai_uri": self.pai_uri}
        for name in _FIELDS[1:]:
            value = getattr(self, name)
            if value is not None and not (name == "verify" and value is True):
                found[name] = MASK if mask and name in ("passwd", "token") and value else value
        for name, value in self.extra.items():
            secret = mask and any(word in name.lower() for word in ("passw", "token", "secret", "key"))
            found[name] = MASK if secret and value else value
        return found

    def __repr__(self) -> str:
        return f"ClusterConfig({self.alias!r}, {self.as_dict()!r})"


def cluster_file() -> str:
    """Where clusters are kept."""
    return home_path("clusters.json")


def parse_verify(value: Any, origin: str) -> bool | str:
    """True, False or the path of a CA file, from JSON or from text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip():
        word = value.strip().lower()
        if word in ("true", "yes", "on", "1"):
            return True
        if word in ("false", "no", "off", "0"):
            return False
        return os.path.expanduser(value)  # noqa: PTH111 - see config.files
    raise ConfigError(f"{origin}: verify: expected true, false or the path of a CA file, got {value!r}")


def _entry(alias: str, found: Any, source: str) -> ClusterConfig:
    if not isinstance(found, dict):
        raise ConfigError(
            f"{source}: {alias}: expected an object, got {found!r}",
            hint='write it as {"pai_uri": "https://pai.example.com", "user": "me"}',
        )
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in found.items():
        name = _OTHER_WORDS.get(key, key)
        if name not in _FIELDS:
            extra[key] = value
        elif name == "verify":
            known["verify"] = parse_verify(value, f"{source}: {alias}")
        elif value is None or isinstance(value, str):
            known[name] = value or None
        else:
            raise ConfigError(
                f"{source}: {alias}.{key}: expected some text, got {value!r}",
                hint=f"correct the file, or write the entry anew with `opai cluster add -a {alias}`",
            )
    extra.pop("alias", None)
    address = known.pop("pai_uri", None) or ""
    if not address and isinstance(extra.get("rest_server_uri"), str):
        address = extra["rest_server_uri"]
    if "://" not in address and address and extra.get("https") is True:
        address = "https://" + address
    if not address and alias != LOCAL:
        raise ConfigError(
            f"{source}: {alias}: pai_uri is missing",
            hint='add the address of the cluster, for example "pai_uri": "https://pai.example.com"',
        )
    return ClusterConfig(alias, address, extra=extra, **known)


def _entries(found: Any, source: str) -> dict[str, Any]:
    if found is None:
        return {}
    if isinstance(found, dict):
        return found
    if isinstance(found, list) and all(isinstance(item, dict) and item.get("alias") for item in found):
        return {str(item["alias"]): item for item in found}
    raise ConfigError(
        f"{source}: expected an object of clusters by alias, got {type(found).__name__}",
        hint='write it as {"my-cluster": {"pai_uri": "https://pai.example.com", "user": "me"}}',
    )


def load_clusters(path: str | os.PathLike[str] | None = None) -> dict[str, ClusterConfig]:
    """Every cluster of the file by alias; none where there is no file."""
    source = os.fspath(path) if path is not None else cluster_file()
    return {alias: _entry(alias, item, source) for alias, item in _entries(read_json(source), source).items()}


def _change(path: str | os.PathLike[str] | None, alias: str, entry: dict[str, Any] | None) -> None:
    source = os.fspath(path) if path is not None else cluster_file()

    def changed(found: Any) -> Any:
        entries = dict(_entries(found, source))
        entries.pop(alias, None)
        if entry is not None:
            entries[alias] = entry
        if not isinstance(found, list):
            return entries
        words = {ours: theirs for theirs, ours in _OTHER_WORDS.items()}
        return [
            {"alias": name, **({words.get(k, k): v for k, v in item.items()} if name == alias else item)}
            for name, item in entries.items()
        ]

    update_json(source, changed)


def save_cluster(config: ClusterConfig, path: str | os.PathLike[str] | None = None) -> None:
    """Add the cluster to the file, or replace the one of the same alias."""
    if not config.alias or any(letter in config.alias for letter in "/\\~ \t\n"):
        raise UsageError(
            f"cluster alias {config.alias!r} cannot be used", hint="use letters, digits, - and _"
        )
    _change(path, config.alias, config.as_dict(mask=False))


def remove_cluster(alias: str, path: str | os.PathLike[str] | None = None) -> None:
    """Remove a cluster from the file."""
    known = load_clusters(path)
    if alias not in known:
        raise _unknown(alias, known)
    _change(path, alias, None)
    if cached_token(known[alias]):
        remember_token(known[alias], None)


def select(alias: str, user_wide: bool | None = None) -> str:
    """Make the cluster the default one and return the file that now says so.

    Unless told, that is the user's file, or the project's where it already names a cluster and would win.
    """
    known = load_clusters()
    if alias not in known and alias != LOCAL:
        raise _unknown(alias, known)
    project = project_file()
    if user_wide is None:
        user_wide = not (project and (read_json(project) or {}).get("cluster-alias"))
    add_defaults({"cluster-alias": alias}, user_wide)
    return user_file() if user_wide or not project else project


def from_env() -> ClusterConfig | None:
    """The cluster that the environment describes (`OPAI_PAI_URI` and so on), if it does."""
    address = os.environ.get("OPAI_PAI_URI")
    if not address:
        return None
    return ClusterConfig(
        os.environ.get("OPAI_CLUSTER_ALIAS") or ENVIRONMENT,
        address,
        user=os.environ.get("OPAI_USER") or None,
        passwd=os.environ.get("OPAI_PASSWD") or None,
        token=os.environ.get("OPAI_TOKEN") or None,
        hdfs_web_uri=os.environ.get("OPAI_HDFS_WEB_URI") or None,
        verify=parse_verify(os.environ.get("OPAI_VERIFY") or True, "the environment variable OPAI_VERIFY"),
        workspace=os.environ.get("OPAI_WORKSPACE") or None,
    )


def get_cluster(alias: str | None = None) -> ClusterConfig:
    """The cluster meant by the alias, or the one in force where none is given."""
    environment = from_env()
    if environment is not None and alias in (None, environment.alias):
        return environment
    alias = alias or setting("cluster-alias")
    known = load_clusters()
    if alias is None:
        if len(known) > 1:
            raise ConfigError(
                f"several clusters are known ({', '.join(sorted(known))}) and none is chosen",
                hint="name one with -a ALIAS, or choose one for good with `opai cluster select ALIAS`",
            )
        alias = next(iter(known), LOCAL)
    if alias in known:
        return known[alias]
    if alias == LOCAL:
        return ClusterConfig(LOCAL)
    raise _unknown(alias, known)


def _unknown(alias: str, known: dict[str, ClusterConfig]) -> NotFoundError:
    names = sorted({*known, LOCAL})
    meant = nearest(alias, names)
    hint = f"did you mean `{meant}`?" if meant else f"known are {', '.join(names)};"
    return NotFoundError(
        f"there is no cluster called {alias!r} in {cluster_file()}",
        hint=f"{hint} `opai cluster add` makes a new one",
    )


def _token_key(config: ClusterConfig) -> str:
    return f"{config.user or ''} {config.pai_uri}"


def cached_token(config: ClusterConfig) -> str | None:
    """The token of the last login with a password, so that not every command logs in again."""
    found = read_json(home_path("tokens.json"))
    token = found.get(_token_key(config)) if isinstance(found, dict) else None
    return token if isinstance(token, str) else None


def remember_token(config: ClusterConfig, token: str | None) -> None:
    """Keep the token of a login (None forgets it)."""

    def changed(found: Any) -> dict[str, Any]:
        tokens = dict(found) if isinstance(found, dict) else {}
        tokens.pop(_token_key(config), None)
        if token:
            tokens[_token_key(config)] = token
        return tokens

    update_json(home_path("tokens.json"), changed)
