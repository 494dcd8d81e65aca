"""Clips of audio in native threads: the oracle's batches, for any number of threads and ranks, after a resume."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import ConcatDataset, Subset, default_collate
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from audio_files import CODINGS, ENCODED, RATE, make_encoded, make_rf64, make_wav
from headrace import Audio, DataLoader, SampleError
from headrace._media.audio import flac_slices, wav_rule
from video_files import why_no_torchcodec

pytestmark = pytest.mark.skipif(why_no_torchcodec() is not None, reason=str(why_no_torchcodec()))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """WAVs of all kinds of samples, of one to three channels and of several rates, some shorter than a clip; and a few
    compressed files."""
    folder = tmp_path_factory.mktemp("audio")
    paths = []
    for number, coding in enumerate([*CODINGS, *CODINGS]):
        rate = 22050 if number % 5 == 4 else RATE
        paths.append(folder / f"{number}.wav")
        paths[-1].write_bytes(make_wav(coding, 3000 + 900 * number, 1 + number % 3, rate, seed=number))
    paths.append(folder / "long.wav")
    paths[-1].write_bytes(make_rf64("s16", 9000, 1))
    return [*paths, *(make_encoded(folder / name, *ENCODED[name]) for name in ("16.flac", "layer3.mp3", "opus.ogg"))]


def audio(files: list[Path], **arguments: Any) -> Audio:
    own = {"seconds": 0.4, "sample_rate": RATE, "lengths": True, **arguments}
    return Audio(files, list(range(len(files))), **own)


def flat(batches: Any) -> list[torch.Tensor]:
    """The tensors of all batches, one after the other."""
    found: list[torch.Tensor] = []
    for batch in batches:
        found += flat(batch) if isinstance(batch, list) else [batch.clone()]
    return found


def same(one: Any, other: Any) -> bool:
    ours, theirs = flat(one), flat(other)
    equal = (a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    return len(ours) > 0 and all(equal)


def joined_by_length(samples: list[Any]) -> Any:
    samples.sort(key=lambda sample: sample[0][1])
    lengths = [length for (_, length), _ in samples]
    assert all(type(length) is int for length in lengths)
    return [default_collate(samples), torch.tensor(lengths)]


@pytest.mark.parametrize("arguments", [{}, {"crop": "center", "lengths": False}, {"num_channels": 2}], ids=str)
def test_batches_are_the_oracles_for_any_number_of_threads(files: list[Path], arguments: dict[str, Any]) -> None:
    data = audio(files, **arguments)
    made = []
    for workers in (0, 1, 2, 4):
        loader = DataLoader(data, batch_size=5, shuffle=True, num_workers=workers, seed=7)
        assert loader.native and loader.route == "native"
        expected = list(loader.reference())
        made.append(list(loader))
        assert same(made[-1], expected) and same(made[-1], made[0])
        second = list(loader)
        assert not same(second, made[0])


def test_crops_that_draw_nothing_are_torchs(files: list[Path]) -> None:
    data = audio(files, crop="start")
    assert same(DataLoader(data, batch_size=4, num_workers=2), TorchDataLoader(data, batch_size=4))
    single = [DataLoader(data, batch_size=None), TorchDataLoader(data, batch_size=None)]
    for (ours, label), (theirs, expected) in zip(*single, strict=True):
        assert torch.equal(ours[0], theirs[0]) and ours[1:] == theirs[1:] and label == expected


def test_a_batch_is_one_piece_of_memory(files: list[Path]) -> None:
    for batch in DataLoader(audio(files, lengths=False), batch_size=5, num_workers=2):
        waveforms = batch[0]
        assert waveforms.is_contiguous() and waveforms.shape[1:] == (1, 6400) and waveforms.dtype == torch.float32


def test_resume_in_the_middle_of_an_epoch(files: list[Path]) -> None:
    loader = DataLoader(audio(files), batch_size=3, shuffle=True, num_workers=2, seed=1)
    whole = list(loader)
    again = DataLoader(audio(files), batch_size=3, shuffle=True, num_workers=1, seed=1)
    iterator = iter(again)
    first = [next(iterator), next(iterator)]
    state = again.state_dict()
    third = DataLoader(audio(files), batch_size=3, shuffle=True, num_workers=0, seed=1)
    third.load_state_dict(state)
    assert same([*first, *third], whole)
    other = DataLoader(audio(files, seconds=0.2), batch_size=3, shuffle=True, seed=1)
    with pytest.raises(ValueError, match="other samples"):
        other.load_state_dict(state)


def test_ranks_share_the_order(files: list[Path]) -> None:
    data = audio(files)
    alone = [batch[1] for batch in DataLoader(data, batch_size=4, shuffle=True, seed=2)]
    loaders = [DataLoader(data, batch_size=2, shuffle=True, seed=2, rank=rank, world_size=2) for rank in range(2)]
    parts = list(zip(*loaders, strict=True))
    assert [torch.stack([one[1], other[1]], 1).flatten().tolist() for one, other in parts] == [
        one.tolist() for one in alone
    ]


def test_subsets_and_concatenations(files: list[Path]) -> None:
    data = audio(files)
    joined: Any = ConcatDataset([Subset(data, [5, 9, 9, 15]), audio(files[3:9])])
    loader = DataLoader(joined, batch_size=3, num_workers=2, seed=4)
    expected = list(loader.reference())
    assert loader.native and same(loader, expected) and loader.verify(2).samples == 6
    (waveforms, _), labels = expected[0]
    assert labels.tolist() == [5, 9, 9] and not torch.equal(waveforms[1], waveforms[2])


def test_what_torch_delivers(files: list[Path]) -> None:
    whole = DataLoader(Audio(files), batch_size=None, num_workers=0)
    assert not whole.native and "different lengths" in str(whole.explain()) and len(list(whole)) == len(files)
    mixed: Any = ConcatDataset([audio(files), audio(files, crop="start")])
    assert "clips of different kinds" in str(DataLoader(mixed).explain())
    images: Any = ConcatDataset([audio(files), headrace.ImageFiles([])])
    assert not DataLoader(images, batch_size=2).native


def test_a_transform_that_is_set_later(files: list[Path]) -> None:
    data = audio(files[:6], crop="start", lengths=False)
    loader = DataLoader(data, batch_size=3)
    before = list(loader)
    data.transform = lambda waveform: 2 * waveform
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        after = list(loader)
    assert not loader.native and "out_transform" in str(loader.explain())
    assert all(torch.equal(2 * one[0], two[0]) for one, two in zip(before, after, strict=True))


def test_collate_functions_get_the_samples(files: list[Path]) -> None:
    loader = DataLoader(audio(files, crop="start"), batch_size=4, collate_fn=joined_by_length, num_workers=1)
    expected = TorchDataLoader(audio(files, crop="start"), batch_size=4, collate_fn=joined_by_length)
    assert loader.native and same(loader, expected)


def test_out_transform_gets_the_batch(files: list[Path]) -> None:
    def spectrum(batch: Any) -> Any:
        (waveforms, _), labels = batch
        return torch.stft(waveforms[:, 0], 256, window=torch.hann_window(256), return_complex=True).abs(), labels

    loader = DataLoader(audio(files), batch_size=4, out_transform=spectrum, num_workers=1)
    assert next(iter(loader))[0].shape == (4, 129, 101)


def test_reports(files: list[Path], tmp_path: Path) -> None:
    loader = DataLoader(audio(files), batch_size=4, shuffle=True, num_workers=2, seed=0)
    assert "0 differ" in str(loader.verify())
    list(loader)
    stats = loader.stats()
    assert {one.name: one.items for one in stats.stages}["read"] == len(files)
    assert 0 < {one.name: one.items for one in stats.stages}["codecs"] < len(files)
    assert stats.bytes_read > 0 and "codecs" in stats.python_s
    text = str(loader.explain())
    assert "plain WAV" in text and "random crop" in text and "with lengths" in text
    loader.report(tmp_path / "report.html", batches=2)
    assert "plain WAV" in (tmp_path / "report.html").read_text()
    with pytest.raises(RuntimeError, match="no recipe"):
        loader.recipe()


@pytest.mark.parametrize("workers", [0, 2])
def test_broken_files(files: list[Path], tmp_path: Path, workers: int) -> None:
    broken = {
        "empty.wav": b"",
        "text.wav": b"no sound " * 100,
        "header.wav": make_wav("s16", 500)[:30],
        "huge.wav": make_wav("s16", 500)[:40] + b"\xff\xff\xff\x7f",
        "cut.flac": files[-3].read_bytes()[:2000],
        "cut.mp3": files[-2].read_bytes()[:20],
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        data = Audio([files[0], tmp_path / name, files[1]], [0, 1, 2], seconds=0.1, sample_rate=RATE)
        with pytest.raises(Exception, match=name.replace(".", r"\.")) as caught:
            list(DataLoader(data, batch_size=3, num_workers=workers))
        assert isinstance(caught.value, (SampleError, RuntimeError, OSError))
        kinds: Any = (("skip", [0, 2]), ("replace", [0, 2, 2]))
        for on_error, labels in kinds:
            loader = DataLoader(data, batch_size=3, num_workers=workers, on_error=on_error, seed=3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected, made = list(loader.reference()), list(loader)
            assert made[0][1].tolist() == labels and same(made, expected)
            assert [one.index for one in loader.errors] == [1]


def test_lengths_of_skipped_and_replaced_samples(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "bad.wav").write_bytes(b"")
    data = Audio([files[0], tmp_path / "bad.wav", files[5]], seconds=0.4, sample_rate=RATE, lengths=True)
    kinds: Any = (("skip", [3000, 6400]), ("replace", [3000, 6400, 6400]))
    for on_error, lengths in kinds:
        loader = DataLoader(data, batch_size=3, num_workers=1, on_error=on_error)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ((_, made),) = list(loader)
        assert made.tolist() == lengths


def test_what_is_no_file(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(DataLoader(Audio([tmp_path / "no.wav"], seconds=1, sample_rate=RATE), num_workers=1))
    with pytest.raises(OSError):
        list(DataLoader(Audio([tmp_path], seconds=1, sample_rate=RATE), num_workers=1))


def test_no_probe_agrees(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another FFmpeg: torchcodec makes all samples, and the batches are the same."""
    data = audio(files)
    expected = list(DataLoader(data, batch_size=4, seed=5))
    monkeypatch.setattr("headrace._media.audio.wav_rule.probed_arithmetic", lambda: (0, 0.0))
    monkeypatch.setattr("headrace._media.audio.wav_slices._are_slices_exact", lambda: False)
    monkeypatch.setattr(flac_slices, "soundfile", lambda: None)
    loader = DataLoader(data, batch_size=4, seed=5, num_workers=2)
    assert same(loader, expected)
    assert {one.name: one.items for one in loader.stats().stages}["codecs"] == len(files)


def test_the_installed_ffmpeg_is_known() -> None:
    codings, weight = wav_rule.probed_arithmetic()
    assert codings == 0b111111 and weight > 0


def test_arguments_of_images_are_refused(files: list[Path]) -> None:
    for name, value in (("dtype", torch.float16), ("memory_format", torch.channels_last), ("entry_points", None)):
        options: Any = {name: value}
        with pytest.raises(TypeError, match="samples are waveforms"):
            DataLoader(audio(files), **options)


def test_emulated_device(files: list[Path]) -> None:
    data = audio(files)
    assert same(DataLoader(data, batch_size=4, seed=5, device="emulated"), DataLoader(data, batch_size=4, seed=5))


def test_persistent_workers_and_auto(files: list[Path]) -> None:
    data = audio(files)
    expected = list(DataLoader(data, batch_size=4, seed=5))
    kept = DataLoader(data, batch_size=4, seed=5, num_workers=2, persistent_workers=True)
    assert same(kept, expected) and not same(kept, expected)
    assert same(DataLoader(data, batch_size=4, seed=5, num_workers="auto"), expected)
