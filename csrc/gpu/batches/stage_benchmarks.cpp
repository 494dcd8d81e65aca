// Stages all data before the clock starts.
#include "gpu/batches/stage_benchmarks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>

#include "core/base/thread_pool.h"
#include "core/base/trace/stage_stats.h"
#include "core/fuse/fuse.h"
#include "core/jpeg/decode/plane_decoder.h"
#include "gpu/batches/staging.h"
#include "gpu/kernel/job_builder.h"

namespace headrace {

FuseTiming time_fuse(const std::shared_ptr<Device>& device, std::span<const std::span<const uint8_t>> files,
                     std::span<const Plan> plans, Size size, const OutputStrides& strides, std::span<const uint8_t> lut,
                     int repeats) {
  const DeviceScope current(*device);
  FuseTiming timing;
  StagingArea area(device);
  PlaneDecoder decoder(kernels().blocks);
  JobBuilder builder;
  uint8_t* output = area.take_device(files.size() * strides.sample_bytes);
  std::vector<SampleJob> jobs;
  for (size_t i = 0; i < files.size(); ++i) {
    const JpegHeader header = parse_jpeg_header(files[i]);
    const PlaneLayout box = plane_layout(header, kernel_box(plans[i], header.size));
    const StagedBytes planes = area.take(box.bytes);
    decoder.decode(files[i], header, box, planes.host);
    jobs.push_back(builder.build(plans[i], box.at(planes.device), area));
    jobs.back().output = output + i * strides.sample_bytes;
    timing.bytes += box.bytes + strides.sample_bytes;
  }
  const StagedBytes table = area.take(lut.size()), list = area.take(jobs.size() * sizeof(SampleJob));
  std::memcpy(table.host, lut.data(), lut.size());
  std::memcpy(list.host, jobs.data(), jobs.size() * sizeof(SampleJob));
  const OwnedStream stream(device);
  area.upload(stream.get());
  OutputFormat format = output_format(size, strides);
  format.lut = table.device;
  const FuseLaunch launch = launch_of(reinterpret_cast<const SampleJob*>(list.device), jobs, format);
  timing.ms = device->time_fuse(launch, repeats, stream.get());
  return timing;
}

std::vector<double> time_decoders(const std::shared_ptr<Device>& device,
                                  const std::vector<std::unique_ptr<BatchDecoder>>& decoders,
                                  std::span<const std::span<const uint8_t>> files, int group, int repeats) {
  const DeviceScope current(*device);
  StagingArea area(device);
  std::vector<EncodedImage> gray, colour;
  for (const auto& file : files) {
    const JpegHeader header = parse_jpeg_header(file);
    const PlaneLayout whole = plane_layout(header, whole_image(header.size));
    uint8_t* staged = area.take_pinned(file.size());
    std::memcpy(staged, file.data(), file.size());
    (header.components == 1 ? gray : colour)
        .push_back({{staged, file.size()}, whole.at(area.take_device(whole.bytes))});
  }
  std::vector<std::span<const EncodedImage>> groups;
  for (const auto* images : {&gray, &colour}) {
    for (size_t at = 0; at < images->size(); at += static_cast<size_t>(group)) {
      groups.push_back(std::span(*images).subspan(at, std::min(static_cast<size_t>(group), images->size() - at)));
    }
  }
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    std::atomic<size_t> next{0};
    std::atomic<bool> fine{true};
    const int64_t begin = now_ns();
    ThreadPool threads;
    threads.start(static_cast<int>(decoders.size()), [&](int lane) {
      try {
        device->enter();
        for (size_t k; (k = next.fetch_add(1)) < groups.size();) {
          if (!decoders[static_cast<size_t>(lane)]->decode(groups[k]).empty()) fine = false;
        }
      } catch (const std::exception&) {
        fine = false;
      }
    });
    threads.join();
    seconds.push_back(fine ? static_cast<double>(now_ns() - begin) / 1e9 : 0.0);
  }
  return seconds;
}

std::vector<float> time_copy(const std::shared_ptr<Device>& device, size_t bytes, int repeats) {
  const DeviceScope current(*device);
  const OwnedStream stream(device);
  return device->time_copy(bytes, repeats, stream.get());
}

}  // namespace headrace
