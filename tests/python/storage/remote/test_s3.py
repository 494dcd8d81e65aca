"""Tar shards in a bucket of moto's S3 server, through s3fs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from object_stores import PATTERN, SHARDS, batches, first_error, transform, write_shards

from headrace import DataLoader, ImageFiles, Network, TarShards, TarStream, Videos, uniform_frames
from support import assert_same, pictures
from torchvision_shim import import_torchvision
from video_files import INDEXED, make_video, why_no_torchcodec

pytest.importorskip("s3fs", reason="s3: URLs are read with s3fs")
server = pytest.importorskip("moto.server", reason="moto is the S3 server of these tests")


@pytest.fixture(scope="module")
def bucket() -> Iterator[tuple[Any, dict[str, Any]]]:
    """A client, and the storage options."""
    import boto3

    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    options = {"key": "name", "secret": "hunter2", "endpoint_url": f"http://{host}:{port}"}
    client = boto3.client(
        "s3",
        aws_access_key_id="name",
        aws_secret_access_key="hunter2",
        endpoint_url=options["endpoint_url"],
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="images")
    yield client, options
    client.close()
    running.stop()


def test_equal_to_shards_on_a_disk(bucket: tuple[Any, dict[str, Any]], tmp_path: Path) -> None:
    client, options = bucket
    folder = write_shards(tmp_path / "local")
    for shard in range(SHARDS):
        client.put_object(Bucket="images", Key=f"train/{shard:03}.tar", Body=(folder / f"{shard:03}.tar").read_bytes())
    expected = batches(TarShards(str(folder / PATTERN), label="txt", transform=transform(), index=False))
    for cache in (None, tmp_path / "cache", tmp_path / "cache"):
        far = TarShards(
            f"s3://images/train/{PATTERN}", label="txt", transform=transform(), cache=cache, storage_options=options
        )
        assert_same(batches(far), expected)
    assert far.location(0) == "s3://images/train/000.tar:0000000.jpg"

    client.put_object(Bucket="images", Key="train/000.tar", Body=(folder / "001.tar").read_bytes())
    far = TarShards(f"s3://images/train/{PATTERN}", transform=transform(), storage_options=options)
    client.put_object(Bucket="images", Key="train/000.tar", Body=(folder / "000.tar").read_bytes())
    assert "s3://images/train/000.tar: the object was changed" in first_error(far)


def test_a_list_of_images(bucket: tuple[Any, dict[str, Any]], tmp_path: Path) -> None:
    client, options = bucket
    urls, paths = [], []
    for i, data in enumerate(pictures(24)):
        client.put_object(Bucket="images", Key=f"{i}.jpg", Body=data)
        urls.append(f"s3://images/{i}.jpg")
        paths.append(tmp_path / f"{i}.jpg")
        paths[-1].write_bytes(data)
    far = ImageFiles(urls, range(24), transform(), storage_options=options)
    assert_same(batches(far), batches(ImageFiles(paths, range(24), transform())))


def test_a_list_of_videos(bucket: tuple[Any, dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("av", exc_type=ImportError)
    if (reason := why_no_torchcodec()) is not None:
        pytest.skip(reason)
    client, options = bucket
    paths = [make_video(tmp_path / name, *INDEXED[name]) for name in ("x264.mp4", "x264.mkv")]
    for path in paths:
        client.put_object(Bucket="images", Key=path.name, Body=path.read_bytes())
    crop = import_torchvision().transforms.v2.CenterCrop(32)
    wanted: dict[str, Any] = {"clips": uniform_frames(3), "transform": crop}
    far = Videos([f"s3://images/{path.name}" for path in paths], [0, 1], storage_options=options, **wanted)
    loader = DataLoader(far, 2, num_workers=2)
    assert_same(list(loader), list(DataLoader(Videos(paths, [0, 1], **wanted), 2, num_workers=1)))
    assert loader.route == "native"


def test_errors_say_what_to_do(bucket: tuple[Any, dict[str, Any]]) -> None:
    _, options = bucket
    with pytest.raises(FileNotFoundError, match=r"s3://images/none\.tar: there is no such object"):
        TarShards("s3://images/none.tar", storage_options=options)
    with pytest.raises(OSError, match="no connection could be made to this host") as caught:
        TarShards(
            "s3://images/none.tar",
            storage_options=options | {"endpoint_url": "http://127.0.0.1:9"},
            network=Network(patience=0.5),
        )
    assert "hunter2" not in str(caught.value)


def test_a_stream_is_the_shards(bucket: tuple[Any, dict[str, Any]], tmp_path: Path) -> None:
    client, options = bucket
    folder = write_shards(tmp_path / "local")
    for shard in range(SHARDS):
        client.put_object(Bucket="images", Key=f"stream/{shard:03}.tar", Body=(folder / f"{shard:03}.tar").read_bytes())

    def stream(**more: Any) -> TarStream:
        urls = f"s3://images/stream/{PATTERN}"
        return TarStream(urls, label="txt", transform=transform(), storage_options=options, **more)

    local = TarShards(str(folder / PATTERN), label="txt", transform=transform(), index=False)
    in_order = list(DataLoader(stream(), 8, num_workers=2, seed=0))
    assert [text for _, texts in in_order for text in texts] == [local[i][1] for i in range(len(local))]
    loader = DataLoader(stream(shuffle=True, buffer=20), 8, num_workers=2, seed=0)
    assert loader.native
    whole = list(loader)
    assert sorted(text for _, texts in whole for text in texts) == sorted(local[i][1] for i in range(len(local)))
    loader.set_epoch(0)
    assert_same(list(loader.reference()), whole)
    batches = iter(loader)
    assert_same([next(batches) for _ in range(3)], whole[:3])
    state = loader.state_dict()
    again = DataLoader(stream(shuffle=True, buffer=20), 8, num_workers=2, seed=0)
    again.load_state_dict(state)
    assert_same(list(again), whole[3:])

    client.put_object(Bucket="images", Key="stream/000.tar", Body=(folder / "001.tar").read_bytes())
    changed = DataLoader(stream(shuffle=True, buffer=20), 8, num_workers=2, seed=0)
    with pytest.raises(Exception, match=r"s3://images/stream/000\.tar: the object was changed"):
        changed.load_state_dict(state)
        list(changed)
    client.put_object(Bucket="images", Key="stream/000.tar", Body=b"")
    with pytest.raises(ValueError, match=r"s3://images/stream/000\.tar"):
        list(DataLoader(stream(), 8, num_workers=2, seed=0))
    client.delete_object(Bucket="images", Key="stream/000.tar")
    with pytest.raises(FileNotFoundError, match=r"s3://images/stream/000\.tar: there is no such object") as missing:
        list(DataLoader(stream(), 8, num_workers=2, seed=0))
    assert "hunter2" not in str(missing.value)


def test_ranges_are_read_by_signed_urls(bucket: tuple[Any, dict[str, Any]], tmp_path: Path) -> None:
    """Natively, for this endpoint is one of plain HTTP; by s3fs where other options say how to ask."""
    client, options = bucket
    folder = write_shards(tmp_path / "local")
    for shard in range(SHARDS):
        client.put_object(Bucket="images", Key=f"s/{shard:03} +.tar", Body=(folder / f"{shard:03}.tar").read_bytes())
    expected = batches(TarShards(str(folder / PATTERN), transform=transform(), index=False))
    url = "s3://images/s/{000..002} +.tar"
    for more, native in (({}, True), ({"requester_pays": True}, False), ({"config_kwargs": {"s3": {}}}, False)):
        far = TarShards(url, transform=transform(), storage_options=options | more, network=Network(hedge=0))
        assert far._remote is not None
        fetcher = far._remote.fetcher
        before = fetcher.counts()["requests"], fetcher._plain.counts().get("requests", 0)
        assert_same(batches(far), expected)
        made = fetcher._plain.counts().get("requests", 0) - before[1]
        assert (made > 0) == native
        assert (fetcher.counts()["requests"] - before[0] == made) == native


def test_a_signature_that_is_refused_costs_a_request(
    bucket: tuple[Any, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, options = bucket
    folder = write_shards(tmp_path / "local")
    for shard in range(SHARDS):
        client.put_object(Bucket="images", Key=f"r/{shard:03}.tar", Body=(folder / f"{shard:03}.tar").read_bytes())
    expected = batches(TarShards(str(folder / PATTERN), transform=transform(), index=False))
    import s3fs

    async def other(self: Any, path: str, **_: Any) -> str:
        return f"{options['endpoint_url']}/images/none"

    monkeypatch.setattr(s3fs.S3FileSystem, "_url", other)
    far = TarShards(f"s3://images/r/{PATTERN}", transform=transform(), storage_options=options)
    assert_same(batches(far), expected)
