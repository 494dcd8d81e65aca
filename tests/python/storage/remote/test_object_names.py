"""What names an object in a cache: all of its URL and its options, but for known signatures and credentials."""

from __future__ import annotations

from typing import Any

import pytest

from headrace._storage.remote.clients.responses import Stamp, is_strong
from headrace._storage.remote.urls import name_object

HEX = "0123456789abcdef" * 4
V4 = (
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20200101%2Feu%2Fs3%2Faws4_request&X-Amz-Date="
    "20200101T000000Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature={}"
)
GOOGLE = V4.replace("X-Amz-", "X-Goog-").replace("AWS4-HMAC", "GOOG4-RSA").replace("aws4_request", "goog4_request")
AZURE = "sv=2022-11-02&ss=b&srt=o&sp=r&se=2030-01-01T00%3A00%3A00Z&sig={}"
SIGNED = {
    "AWS": ("https://bucket.s3.eu-west-1.amazonaws.com/a.jpg", V4, HEX, HEX[::-1]),
    "AWS, by path": ("https://s3.amazonaws.com/bucket/a.jpg", V4 + "&X-Amz-Security-Token=t", HEX, HEX[::-1]),
    "AWS, version 2": ("https://b.s3.amazonaws.com/a", "AWSAccessKeyId=AK&Signature={}&Expires=17", "a%3D", "b%3D"),
    "R2": ("https://x.r2.cloudflarestorage.com/b/a.jpg", V4, HEX, HEX[::-1]),
    "Google": ("https://storage.googleapis.com/b/a.jpg", GOOGLE, HEX, HEX[::-1]),
    "Google, version 2": ("https://b.storage.googleapis.com/a", "GoogleAccessId=a&Signature={}&Expires=17", "a", "b"),
    "Azure": ("https://account.blob.core.windows.net/c/a.jpg", AZURE, "a%3D", "b%3D"),
    "Azure, by a policy": (
        "https://account.blob.core.windows.net/c/a",
        "si=policy&sv=2022-11-02&sr=c&sig={}",
        "a",
        "b",
    ),
    "CloudFront": ("https://d1.cloudfront.net/a.jpg", "Expires=17&Signature={}&Key-Pair-Id=K", "a", "b"),
    "CloudFront, by a policy": ("https://d1.cloudfront.net/a", "Policy=p&Signature={}&Key-Pair-Id=K", "a", "b"),
}


@pytest.mark.parametrize("name", SIGNED)
def test_a_signature_of_its_service_names_nothing(name: str) -> None:
    url, query, one, other = SIGNED[name]
    assert name_object(f"{url}?{query.format(one)}") == name_object(f"{url}?{query.format(other)}") == name_object(url)
    version = "versionId=7&"
    assert (
        name_object(f"{url}?{version}{query.format(one)}") == name_object(f"{url}?{version[:-1]}") != name_object(url)
    )


@pytest.mark.parametrize("name", SIGNED)
def test_anywhere_else_it_names_the_object(name: str) -> None:
    url, query, one, other = SIGNED[name]
    for host in ("example.com", "127.0.0.1:9000", "amazonaws.com.example.com", "evilcloudfront.net", "xamazonaws.com"):
        moved = f"https://{host}/a.jpg?"
        assert (
            len({name_object(moved + query.format(one)), name_object(moved + query.format(other)), name_object(moved)})
            == 3
        )
    for part in query.format(one).split("&"):  # without any part that is needed it is no signature
        left = [other for other in query.format(one).split("&") if other != part]
        if name_object(f"{url}?{'&'.join(left)}") == name_object(url):
            assert part.partition("=")[0] in ("ss", "srt", "sr", "X-Amz-Security-Token"), part
    twice = f"{url}?{query.format(one)}&{query.format(other)}"
    assert name_object(twice) != name_object(url)


@pytest.mark.parametrize("key", ["id", "sp", "se", "sv", "sr", "sig", "token", "policy", "expires", "signature"])
@pytest.mark.parametrize("host", ["example.com", "b.s3.amazonaws.com", "a.blob.core.windows.net", "d.cloudfront.net"])
def test_a_parameter_that_selects_objects_names_them(key: str, host: str) -> None:
    names = {name_object(f"https://{host}/image?{key}={i}") for i in range(5)}
    assert len(names) == 5


def test_all_of_a_url_counts() -> None:
    urls = ["a", "a?b", "a?b=", "a?b=&c", "a?c&b", "a?b=%20", "a?b=+", "A", "a/", "a;v=1", "a?b#1", "a%41", "aA"]
    assert len({name_object(f"https://host/{url}") for url in urls}) == len(urls)
    assert name_object("https://user@host/a") != name_object("https://host/a") != name_object("http://host/a")
    assert name_object("https://host:1/a") != name_object("https://host/a")


def test_options_that_select_objects_count_and_credentials_do_not() -> None:
    url = "s3://bucket/a"
    assert name_object(url, {"key": "1", "secret": "2", "token": "3"}) == name_object(url, {}) == name_object(url)
    others: list[dict[str, Any]] = [
        {"endpoint_url": "http://a"},
        {"client_kwargs": {"endpoint_url": "http://a"}},
        {"profile": "x"},
    ]
    assert len({name_object(url, one) for one in [{}, *others]}) == 4
    web = "https://host/a"
    assert name_object(web, {"headers": {"Accept": "image/webp"}}) != name_object(web)
    assert name_object(web, {"headers": {"Authorization": "a"}}) != name_object(
        web, {"headers": {"Authorization": "b"}}
    )


@pytest.mark.parametrize(
    ("tag", "strong"),
    [
        ('"abc"', True),
        ("0x8DABC", True),
        ("CJDa7Nz4/IMDEAE=", True),
        ("d41d8cd98f00b204e9800998ecf8427e", True),
        ('W/"abc"', False),
        ("", False),
        ("Wed, 01 Jan 2020 00:00:00 GMT", False),
        ("Wednesday, 01-Jan-20 00:00:00 GMT", False),
        ("2020-01-01 00:00:00+00:00", False),
        ("2020-01-01T00:00:00Z", False),
        ("1577836800.0", False),
        ("1577836800", False),
    ],
)
def test_what_says_that_the_content_is_the_same(tag: str, strong: bool) -> None:
    assert is_strong(Stamp(5, tag)) == strong
