// The reader: whole files whatever size they report, memory as it is, and the system's errno on failure.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <span>
#include <thread>

#include "core/base/error.h"
#include "core/io/source/reader.h"
#include "support/temporary_folder.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

Bytes pattern(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + i / 251);
  return bytes;
}

Blob file(const std::string& path) {
  Blob blob;
  blob.path = path.c_str();
  return blob;
}

Bytes read(Reader& reader, const std::string& path) {
  const auto bytes = reader.read(file(path));
  return {bytes.begin(), bytes.end()};
}

int errno_of(const std::string& path) {
  Reader reader;
  try {
    reader.read(file(path));
  } catch (const Error& error) {
    CHECK(error.stage() == Stage::kRead);
    CHECK(std::string(error.what()) != "");
    return error.os_errno();
  }
  return 0;
}

}  // namespace

TEST_CASE("files of every size are read whole, by one reader after another") {
  const TemporaryFolder folder;
  Reader reader;
  for (const size_t size : {0, 1, 100'000, 17, 65'535, 65'536, 65'537, 1'000'000, 0, 81'919, 81'920}) {
    CAPTURE(size);
    CHECK(read(reader, folder.file("file", pattern(size))) == pattern(size));
  }
}

TEST_CASE("memory is handed on as it is") {
  const Bytes bytes = pattern(1000);
  Blob blob;
  blob.data = bytes.data();
  blob.size = bytes.size();
  Reader reader;
  const auto got = reader.read(blob);
  CHECK(got.data() == bytes.data());
  CHECK(got.size() == bytes.size());
  CHECK(reader.read(Blob{}).empty());
}

TEST_CASE("a table of spans has their bytes") {
  const Bytes bytes = pattern(1000);
  const std::span<const uint8_t> all(bytes);
  const auto table = BlobTable::of_spans({all.subspan(7, 100), all.subspan(1000), all});
  REQUIRE(table->size() == 3);
  Reader reader;
  CHECK(reader.read(table->at(0)).data() == bytes.data() + 7);
  CHECK(reader.read(table->at(0)).size() == 100);
  CHECK(reader.read(table->at(1)).empty());
  CHECK(reader.read(table->at(2)).size() == 1000);
}

TEST_CASE("what the system refuses is an error with its errno") {
  const TemporaryFolder folder;
  CHECK(errno_of(folder.path("missing")) == ENOENT);
  CHECK(errno_of(folder.path("")) == EISDIR);
  CHECK(errno_of(folder.file("file", {1}) + "/below") == ENOTDIR);
  CHECK(errno_of("") == ENOENT);
  CHECK(errno_of(folder.path(std::string(300, 'x'))) == ENAMETOOLONG);
  if (geteuid() != 0) {
    const std::string path = folder.file("secret", {1});
    chmod(path.c_str(), 0);
    CHECK(errno_of(path) == EACCES);
  }
}

TEST_CASE("a reader goes on after an error") {
  const TemporaryFolder folder;
  Reader reader;
  CHECK_THROWS_AS(reader.read(file(folder.path("missing"))), Error);
  CHECK(read(reader, folder.file("file", pattern(10))) == pattern(10));
}

TEST_CASE("a file of /proc, which says it is empty, is read whole") {
  std::ifstream stream("/proc/self/status");
  REQUIRE(stream.good());
  Reader reader;
  const Bytes bytes = read(reader, "/proc/self/status");
  CHECK(bytes.size() > 100);
  CHECK(std::string(bytes.begin(), bytes.begin() + 5) == "Name:");
}

TEST_CASE("a pipe is read to its end, in however many pieces it comes") {
  const TemporaryFolder folder;
  const std::string path = folder.path("pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const Bytes sent = pattern(400'000);
  std::thread writer([&] {
    std::ofstream to(path, std::ios::binary);
    for (size_t at = 0; at < sent.size(); at += 7777) {
      to.write(reinterpret_cast<const char*>(sent.data()) + at,
               static_cast<std::streamsize>(std::min<size_t>(7777, sent.size() - at)));
      to.flush();
    }
  });
  Reader reader;
  const Bytes got = read(reader, path);
  writer.join();
  CHECK(got == sent);
}

TEST_CASE("a file that grows while it is read gives some beginning of it, at least what was there") {
  const TemporaryFolder folder;
  const Bytes whole = pattern(3'000'000);
  const std::string path = folder.file("growing", Bytes(whole.begin(), whole.begin() + 100'000));
  std::thread writer([&] {
    std::ofstream to(path, std::ios::binary | std::ios::app);
    for (size_t at = 100'000; at < whole.size(); at += 50'000) {
      to.write(reinterpret_cast<const char*>(whole.data()) + at, 50'000);
      to.flush();
    }
  });
  Reader reader;
  for (size_t before = 100'000; before < whole.size();) {
    const auto got = reader.read(file(path));
    REQUIRE(got.size() >= before);
    REQUIRE(std::equal(got.begin(), got.end(), whole.begin()));
    before = got.size();
  }
  writer.join();
}

TEST_CASE("no file stays open") {
  const TemporaryFolder folder;
  const std::string path = folder.file("file", pattern(10));
  const auto lowest_free = [] {
    const int fd = dup(0);
    close(fd);
    return fd;
  };
  const int before = lowest_free();
  Reader reader;
  for (int i = 0; i < 50; ++i) {
    reader.read(file(path));
    CHECK_THROWS_AS(reader.read(file(folder.path(""))), Error);
  }
  CHECK(lowest_free() == before);
}

namespace {

/// A file that takes no space on the disk: its first bytes, and zeros.
std::string sparse(const TemporaryFolder& folder, const Bytes& first, size_t size) {
  const std::string path = folder.file("large", first);
  std::filesystem::resize_file(path, size);
  return path;
}

bool left_to_pillow(const std::string& path) {
  Reader reader;
  try {
    reader.read(file(path));
    return false;
  } catch (const NeedsPillow& verdict) {
    return std::string(verdict.what()) != "";
  }
}

}  // namespace

TEST_CASE("devices and what is too large are left to Pillow, which reads what it needs") {
  const TemporaryFolder folder;
  const Bytes jpeg = {0xFF, 0xD8, 0xFF, 0xE0}, other = {0x89, 'P', 'N', 'G'};
  CHECK(left_to_pillow("/dev/zero"));
  CHECK(left_to_pillow("/dev/null"));
  CHECK(left_to_pillow(sparse(folder, other, Reader::kMostOther + 1)));
  CHECK(left_to_pillow(sparse(folder, {}, Reader::kMostOther + 1)));
  CHECK(left_to_pillow(sparse(folder, other, size_t{3} << 30)));
  CHECK(left_to_pillow(sparse(folder, jpeg, Reader::kMostJpeg + 1)));
  CHECK_FALSE(left_to_pillow(sparse(folder, other, Reader::kMostOther)));
}

TEST_CASE("a large JPEG is read whole") {
  const TemporaryFolder folder;
  Reader reader;
  Bytes bytes = pattern(Reader::kMostOther + 100'000);
  bytes[0] = bytes[2] = 0xFF;
  bytes[1] = 0xD8;
  for (int i = 0; i < 2; ++i) CHECK(read(reader, folder.file("file", bytes)) == bytes);
  CHECK(read(reader, folder.file("file", pattern(10))) == pattern(10));
}

TEST_CASE("a pipe without an end is read to a limit") {
  const TemporaryFolder folder;
  const std::string path = folder.path("pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::signal(SIGPIPE, SIG_IGN);
  std::thread writer([&] {
    const Bytes zeros(1 << 20);
    std::ofstream to(path, std::ios::binary);
    while (to.write(reinterpret_cast<const char*>(zeros.data()), static_cast<std::streamsize>(zeros.size()))) {
    }
  });
  CHECK(errno_of(path) == EFBIG);
  writer.join();
}
