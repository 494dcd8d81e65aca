// Binds clips of audio: their pipeline, its batches as tensors, and the samples of a WAV in memory.
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "bind/convert.h"
#include "bind/core/pipeline_objects.h"
#include "bind/core/process_recorder.h"
#include "bind/core/slot_tensor.h"
#include "bind/unlocked.h"
#include "core/audio/wav_file.h"
#include "core/base/error.h"
#include "core/pipeline/clips/clip_backend.h"

namespace py = pybind11;

namespace headrace {
namespace {

Clip::Place place_named(const std::string& name) {
  if (name == "start") return Clip::Place::kStart;
  if (name == "center") return Clip::Place::kCentre;
  if (name == "random") return Clip::Place::kDrawn;
  throw py::value_error("there is no such place: " + name);
}

Clip make_clip(int64_t samples, int sample_rate, int channels, const std::string& place, float stereo_weight,
               uint32_t codings) {
  if (samples < 1 || samples > INT32_MAX) throw py::value_error("a clip has from 1 to 2^31 - 1 samples");
  if (channels < 1) throw py::value_error("a clip has at least one channel");
  Clip clip;
  clip.samples = samples;
  clip.sample_rate = sample_rate;
  clip.channels = channels;
  clip.place = place_named(place);
  if (stereo_weight != 0.0f) clip.stereo_weight = stereo_weight;
  clip.codings = codings;
  return clip;
}

std::unique_ptr<PyPipeline> clip_pipeline(const Clip& clip, int threads, int slots_kept) {
  PipelineOptions options;
  options.recipe.draws = 1;
  options.recipe.output = {static_cast<int>(clip.samples), 1};
  options.strides = strides_of(Layout::kPlanar, clip.channels, options.recipe.output, sizeof(float));
  options.backend = std::make_shared<ClipBackend>(clip, static_cast<size_t>(slots_kept));
  options.recorder = process_recorder();
  options.threads = threads;
  options.decoder = "codecs";
  return std::make_unique<PyPipeline>(std::move(options));
}

/// A WAV in memory.
class WavInMemory final : public WavBytes {
 public:
  explicit WavInMemory(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  void read(std::span<uint8_t> to, uint64_t offset) const override {
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
  }

 private:
  const std::span<const uint8_t> bytes_;
};

// (the waveform, float32 (channels, samples); how many samples of each channel are the file's). ValueError: no plain
// WAV.
std::pair<py::array_t<float>, int64_t> wav_clip(const py::buffer& wav, const Clip& clip, double draw) {
  const py::buffer_info info = bytes_of(wav);
  const WavInMemory bytes({static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)});
  py::array_t<float> made({static_cast<py::ssize_t>(clip.channels), static_cast<py::ssize_t>(clip.samples)});
  ReadBuffer buffer;
  try {
    const int64_t length =
        read_clip(bytes, clip, draw, made.mutable_data(), [&](size_t size) { return buffer.make_room(size, 0); });
    return {std::move(made), length};
  } catch (const NotPlainWav& reason) {
    throw py::value_error(reason.what());
  }
}

// (number of the coding, channels, loudspeakers, rate, frames, first byte of the first frame) of a plain WAV file; None
// for any other, and for one that cannot be read: the library that opens it next says why.
std::optional<std::tuple<int, int, uint32_t, int, int64_t, int64_t>> wav_layout(const std::string& path) {
  const Unlocked unlocked;
  try {
    const WavHeader header = read_wav_header(WavFile(path.c_str()));
    return std::tuple(static_cast<int>(header.coding), header.channels, header.speakers, header.sample_rate,
                      static_cast<int64_t>(header.frames), static_cast<int64_t>(header.begin));
  } catch (const NotPlainWav&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void bind_clips(py::module_& module) {
  py::class_<Clip>(module, "Clip", "Which part of an audio file becomes a waveform, and how.")
      .def(py::init(&make_clip), py::arg("samples"), py::arg("sample_rate"), py::arg("channels"), py::arg("place"),
           py::kw_only(), py::arg("stereo_weight") = 0.0f, py::arg("codings") = ~0u)
      .def("begin", &Clip::begin, py::arg("total"), py::arg("draw"));
  module.def("clip_pipeline", &clip_pipeline, py::arg("clip"), py::kw_only(), py::arg("threads"),
             py::arg("slots_kept"));
  module.def("wav_clip", &wav_clip, py::arg("wav"), py::arg("clip"), py::arg("draw") = 0.0);
  module.def("wav_layout", &wav_layout, py::arg("path"));
}

}  // namespace headrace
