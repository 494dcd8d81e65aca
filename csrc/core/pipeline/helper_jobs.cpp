// The pipeline's methods for samples that other machines make.
#include <libdeflate.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/pipeline/pipeline.h"
#include "core/pipeline/pipeline_state.h"

namespace headrace {
namespace {

constexpr size_t kMostFileBytes = size_t{16} << 20;  // of a request; the samples of the files after these are made here

RawImage image_at(const uint8_t* pixels, Size size, int channels) {
  return channels == 1 ? gray_image(pixels, size) : rgb_image(pixels, size);
}

}  // namespace

uint32_t checksum(std::span<const uint8_t> bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

std::optional<HelperJob> Pipeline::next_helper_job(int most, int keep, std::chrono::milliseconds patience) {
  state_->check_process();
  SampleQueue::Run run = state_->queue.take_last(most, keep, patience);
  if (run.batch == nullptr) return std::nullopt;
  return HelperJob{std::move(run.batch), run.samples};
}

std::vector<int64_t> Pipeline::read_files(const HelperJob& job, std::vector<uint8_t>& files) {
  state_->check_process();
  if (job.batch == nullptr) throw std::logic_error("this job is finished already");
  files.clear();
  std::vector<int64_t> sizes(static_cast<size_t>(job.samples.count));
  auto worker = state_->spare.take([&] { return state_->new_worker(); });
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t row = job.batch->rows[static_cast<size_t>(job.samples.first) + i];
    const Blob blob = job.batch->blobs->at(row);
    if (blob.raw.data != nullptr || blob.columns != nullptr || files.size() > kMostFileBytes) continue;
    try {
      const std::span<const uint8_t> bytes = worker->read(blob, job.batch->cancelled);
      files.insert(files.end(), bytes.begin(), bytes.end());
      sizes[i] = static_cast<int64_t>(bytes.size());
    } catch (const Error&) {  // who makes the sample here finds the same, and says so
    }
  }
  state_->spare.give(std::move(worker));
  return sizes;
}

void Pipeline::finish(HelperJob& job, const HelperAnswer& answer) {
  state_->check_process();
  if (job.batch == nullptr) throw std::logic_error("this job is finished already");
  const Size size = options().recipe.output;
  const OutputStrides& strides = options().strides;
  const size_t pixels = static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  const size_t each = answer.finished ? strides.sample_bytes : pixels * static_cast<size_t>(strides.channels);
  const auto count = static_cast<size_t>(job.samples.count);
  if (answer.samples.size() != count * each || answer.made.size() != count || answer.sizes.size() != 2 * count) {
    throw std::invalid_argument("a helper's answer does not fit its job");
  }
  if (strides.frames != 1 || (!answer.finished && strides.channels == 2)) {
    throw std::invalid_argument("helpers make single images");
  }
  auto worker = state_->spare.take([&] { return state_->new_worker(); });
  const std::shared_ptr<Batch> batch = std::exchange(job.batch, nullptr);
  for (size_t i = 0; i < count; ++i) {
    const int sample = job.samples.first + static_cast<int>(i);
    if (answer.made[i] == 0) {
      state_->queue.give_back({batch, {sample, 1}});
      continue;
    }
    batch->sizes[static_cast<size_t>(sample)] = {answer.sizes[2 * i + 1], answer.sizes[2 * i]};
    const uint8_t* from = answer.samples.data() + i * each;
    const bool not_cancelled = state_->guarded(*batch, sample, Stage::kResize, [&] {
      if (answer.finished) {
        std::memcpy(batch->memory + static_cast<size_t>(batch->place(sample)) * each, from, each);
      } else {
        worker->store(image_at(from, size, strides.channels), *batch, sample);
      }
    });
    if (not_cancelled) state_->done(batch);
  }
  state_->spare.give(std::move(worker));
}

void Pipeline::put_back(HelperJob& job) {
  if (job.batch == nullptr || state_->fork.forked()) return;
  state_->queue.give_back({std::exchange(job.batch, nullptr), job.samples});
}

}  // namespace headrace
