// Reads ranges of files that may change meanwhile: the bytes are the ones that were indexed, or there is an error.
#include "core/io/source/file_ranges.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/platform/page_cache.h"
#include "core/io/source/read_ahead.h"

namespace headrace {
namespace {

[[noreturn]] void fail(int code) { throw Error(Stage::kRead, std::generic_category().message(code), code); }

}  // namespace

std::optional<FileState> state_of(const OpenFile& file) {
  struct stat info{};
  if (::fstat(file.descriptor(), &info) != 0) fail(errno);
  return state_in(info);
}

uint64_t read_at(const OpenFile& file, uint8_t* to, uint64_t length, uint64_t offset) {
  uint64_t filled = 0;
  while (filled < length) {
    const auto from = static_cast<off_t>(offset + filled);
    const ssize_t got = ::pread(file.descriptor(), to + filled, length - filled, from);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(errno);
    if (got == 0) break;
    filled += static_cast<uint64_t>(got);
  }
  return filled;
}

FileRanges::FileRanges(std::string paths, std::vector<uint64_t> path_offsets, std::vector<FileStamp> stamps,
                       std::span<const uint32_t> file_of, std::span<const uint64_t> offsets,
                       std::span<const uint64_t> lengths, DescriptorCache& cache, std::shared_ptr<const RowCheck> check)
    : paths_(std::move(paths)),
      path_offsets_(std::move(path_offsets)),
      stamps_(std::move(stamps)),
      file_of_(file_of),
      offsets_(offsets),
      lengths_(lengths),
      cache_(cache),
      check_(std::move(check)) {
  if (stamps_.size() != path_offsets_.size() || offsets.size() != file_of.size() || lengths.size() != file_of.size()) {
    throw std::out_of_range("the arrays of the ranges differ in length");
  }
  for (size_t row = 0; row < file_of.size(); ++row) {
    if (file_of[row] >= stamps_.size()) throw std::out_of_range("range " + std::to_string(row) + " is in no file");
    const uint64_t end = stamps_[file_of[row]].size;
    if (offsets[row] > end || lengths[row] > end - offsets[row]) {
      throw std::out_of_range("range " + std::to_string(row) + " (offset " + std::to_string(offsets[row]) + ", " +
                              std::to_string(lengths[row]) + " bytes) is outside its file of " + std::to_string(end) +
                              " bytes");
    }
  }
}

FileRanges::~FileRanges() { cache_.forget(this); }

std::span<const uint8_t> FileRanges::read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>&) const {
  const uint64_t size = bytes(row);
  if (size > kMostBytes) {
    throw Error(Stage::kRead, "the range has " + std::to_string(size) + " bytes, which is more than 256 MiB", EFBIG);
  }
  // The bytes to check surround the row's bytes: one read for both.
  const std::optional<RowCheck::Part> wanted = check_ == nullptr ? std::nullopt : check_->wanted(row);
  const uint64_t at = offset(row);
  const RowCheck::Part part = wanted.value_or(RowCheck::Part{at, at + size});
  uint8_t* const to = buffer.make_room(static_cast<size_t>(part.end - part.begin), 0);
  const auto file = cache_.get(this, this->file(row), path(row));
  const uint64_t got = read_at(*file, to, part.end - part.begin, part.begin);
  if (part.begin + got < at + size) {
    const uint64_t held = part.begin + got - std::min(at, part.begin + got);
    throw Error(Stage::kRead,
                "the file ends " + std::to_string(held) + " bytes after offset " + std::to_string(at) +
                    ", where the sample has " + std::to_string(size) +
                    " bytes: it was truncated after it was indexed; restore it, or create the dataset again");
  }
  (void)state(row, *file);  // after the read, so that a change during the read is also detected
  if (wanted) check_->check(row, *file, {to, static_cast<size_t>(got)}, part.begin);
  return {to + (at - part.begin), static_cast<size_t>(size)};
}

void FileRanges::prepare(int64_t row) const noexcept {
  const auto at = static_cast<size_t>(row);
  try {
    const auto file = cache_.get(this, file_of_[at], path(row));
    request_file(file->descriptor(), offsets_[at], std::min(lengths_[at], ReadAhead::kMostBytes));
  } catch (const std::exception&) {  // a file that cannot be opened: its read reports that
  }
}

FileState FileRanges::state(int64_t row) const { return state(row, *cache_.get(this, file(row), path(row))); }

FileState FileRanges::state(int64_t row, const OpenFile& file) const {
  const FileState now = state_of(file).value_or(FileState{});
  const FileStamp& then = stamps_[this->file(row)];
  if (now.stamp != then) {
    throw Error(Stage::kRead, "the file was changed after it was indexed (offset " + std::to_string(offset(row)) +
                                  "; " + std::to_string(then.size) + " bytes then, " + std::to_string(now.stamp.size) +
                                  " now): create the dataset again");
  }
  return now;
}

}  // namespace headrace
