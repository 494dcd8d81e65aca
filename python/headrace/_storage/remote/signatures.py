"""The parts of a URL that only authenticate: signatures of known object stores, by their hosts and parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

_DIGITS = r"[0-9]+"
_ANY = r".+"

_AWS = re.compile(r"([a-z0-9.-]+\.)?amazonaws\.com(\.cn)?")
#: Object stores that take AWS's signatures.
_LIKE_AWS = re.compile(
    r"([a-z0-9.-]+\.)(r2\.cloudflarestorage\.com|backblazeb2\.com|wasabisys\.com|digitaloceanspaces\.com)"
)
_GOOGLE = re.compile(r"([a-z0-9._-]+\.)?storage\.googleapis\.com|storage\.cloud\.google\.com")
_AZURE = re.compile(r"[a-z0-9-]+\.(blob|dfs|file)\.core\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)")
_CLOUDFRONT = re.compile(r"[a-z0-9-]+\.cloudfront\.net")


@dataclass(frozen=True)
class _Signature:
    """A way to sign URLs.

    Attributes:
        hosts: where it is in use.
        needed: parameters without which a URL is not signed so, and what their values look like.
        others: further ones that belong to it.
    """

    hosts: tuple[re.Pattern[str], ...]
    needed: Mapping[str, str]
    others: frozenset[str] = frozenset()


def _version_4(prefix: str, algorithm: str) -> dict[str, str]:
    return {
        f"{prefix}-Algorithm": algorithm,
        f"{prefix}-Credential": r".+/[0-9]{8}/.+_request",
        f"{prefix}-Date": r"[0-9]{8}T[0-9]{6}Z",
        f"{prefix}-Expires": _DIGITS,
        f"{prefix}-SignedHeaders": _ANY,
        f"{prefix}-Signature": r"[0-9a-fA-F]{64,}",
    }


_AZURE_OTHERS = frozenset(
    ("se", "st", "sr", "ss", "srt", "si", "sip", "spr", "sdd", "ses", "skoid", "sktid", "skt", "ske", "sks", "skv")
) | frozenset(("saoid", "suoid", "scid"))

_HASH = frozenset(("Hash-Algorithm",))

_SIGNATURES = (
    _Signature((_AWS, _LIKE_AWS), _version_4("X-Amz", "AWS4-HMAC-SHA256"), frozenset(("X-Amz-Security-Token",))),
    _Signature(
        (_AWS, _LIKE_AWS),
        {"AWSAccessKeyId": _ANY, "Signature": _ANY, "Expires": _DIGITS},
        frozenset(("x-amz-security-token",)),
    ),
    _Signature((_GOOGLE,), _version_4("X-Goog", r"GOOG4-(RSA|HMAC)-SHA256")),
    _Signature((_GOOGLE,), {"GoogleAccessId": _ANY, "Signature": _ANY, "Expires": _DIGITS}),
    # One of an account names its services and types, another the kind of its object; both end, or name a policy.
    _Signature((_AZURE,), {"sv": r"\d{4}-\d\d-\d\d", "sig": _ANY, "sp": r"[a-z]+", "se": _ANY}, _AZURE_OTHERS),
    _Signature((_AZURE,), {"sv": r"\d{4}-\d\d-\d\d", "sig": _ANY, "si": _ANY}, _AZURE_OTHERS),
    _Signature((_CLOUDFRONT,), {"Key-Pair-Id": _ANY, "Signature": _ANY, "Expires": _DIGITS}, _HASH),
    _Signature((_CLOUDFRONT,), {"Key-Pair-Id": _ANY, "Signature": _ANY, "Policy": _ANY}, _HASH),
)


def strip_signature(host: str, query: str) -> str:
    """Returns a query without the parameters of a signature, if it is signed in a way that the host is known for.

    What is left is as it was written. A parameter that is there twice is not understood, and nothing is left out.
    """
    parts = query.split("&")
    names = [part.partition("=")[0] for part in parts]
    values = {name: unquote(part.partition("=")[2]) for name, part in zip(names, parts, strict=True)}
    if len(values) < len(names):
        return query
    for one in _SIGNATURES:
        if not any(pattern.fullmatch(host.lower()) for pattern in one.hosts):
            continue
        if all(re.fullmatch(form, values.get(name, "")) for name, form in one.needed.items()):
            left_out = {*one.needed, *one.others}
            return "&".join(part for name, part in zip(names, parts, strict=True) if name not in left_out)
    return query
