// Entries of a cache on disk: the bytes that were written, or none.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "core/io/remote/cache_file.h"
#include "core/io/remote/checksum.h"
#include "support/in_child.h"
#include "support/temporary_folder.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

Bytes bytes_of(size_t count) {
  Bytes made(count);
  for (size_t i = 0; i < count; ++i) made[i] = static_cast<uint8_t>(i * 31 + i / 251);
  return made;
}

Bytes contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t files_in(const TemporaryFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path("")), {}));
}

bool holds(const std::string& path, const Bytes& wanted, std::optional<uint64_t> length = {}) {
  ReadBuffer buffer;
  const auto found = read_cache_file(path, length.value_or(wanted.size()), buffer);
  return found && Bytes(found->begin(), found->end()) == wanted;
}

}  // namespace

TEST_CASE("an entry of any length comes back, and only with the length that is asked for") {
  const TemporaryFolder folder;
  for (const size_t count : {0, 1, 7, 8, 31, 32, 33, 100'000}) {
    const Bytes bytes = bytes_of(count);
    const std::string path = folder.path(std::to_string(count));
    REQUIRE(write_cache_file(path, bytes) == 0);
    CHECK(holds(path, bytes));
    CHECK(holds(path, bytes, count));
    CHECK_FALSE(holds(path, bytes, count + 1));
    CHECK_FALSE(std::filesystem::exists(path));  // what does not fit is removed
  }
  CHECK_FALSE(holds(folder.path("missing"), {}));
}

TEST_CASE("every bit and every truncation is noticed") {
  const TemporaryFolder folder;
  REQUIRE(write_cache_file(folder.path("entry"), bytes_of(67)) == 0);
  const Bytes whole = contents(folder.path("entry"));
  REQUIRE(whole.size() == 67 + kCacheHeader);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes bad = whole;
    bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    CHECK_FALSE(holds(folder.file("bad", bad), bytes_of(67)));
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    CHECK_FALSE(
        holds(folder.file("bad", {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length)}), bytes_of(67)));
  }
  Bytes zeros(whole.size(), 0);  // what a loss of power may leave
  CHECK_FALSE(holds(folder.file("bad", zeros), bytes_of(67)));
}

TEST_CASE("the checksum depends on the order and the number of bytes") {
  CHECK(checksum(Bytes(8, 0)) != checksum(Bytes(9, 0)));
  Bytes a = bytes_of(96), b = a;
  std::swap_ranges(b.begin(), b.begin() + 32, b.begin() + 32);
  CHECK(checksum(a) != checksum(b));
  std::swap_ranges(b.begin(), b.begin() + 32, b.begin() + 32);
  std::swap_ranges(b.begin(), b.begin() + 8, b.begin() + 8);
  CHECK(checksum(a) != checksum(b));
}

TEST_CASE("many writers of one entry, and readers meanwhile, in threads") {
  const TemporaryFolder folder;
  const std::string path = folder.path("entry");
  const Bytes bytes = bytes_of(50'000);
  REQUIRE(write_cache_file(path, bytes) == 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        if (i % 2 == 0) {
          CHECK(write_cache_file(path, bytes) == 0);
        } else {
          CHECK(holds(path, bytes));
        }
      }
    });
  }
  for (std::thread& one : threads) one.join();
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a full disk leaves no file") {
  const TemporaryFolder folder;
  CHECK(in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit most{1000, 1000};
    if (setrlimit(RLIMIT_FSIZE, &most) != 0) return false;
    return write_cache_file(folder.path("entry"), bytes_of(5000)) == EFBIG &&
           write_cache_file(folder.path("small"), bytes_of(500)) == 0;
  }));
  CHECK(files_in(folder) == 1);
  CHECK(write_cache_file(folder.path("none/entry"), bytes_of(5)) == ENOENT);
}

TEST_CASE("only this user may read an entry") {
  const TemporaryFolder folder;
  const mode_t before = umask(0);
  REQUIRE(write_cache_file(folder.path("entry"), bytes_of(5)) == 0);
  umask(before);
  struct stat info{};
  REQUIRE(stat(folder.path("entry").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  std::filesystem::create_symlink(folder.path("victim"), folder.path("link"));
  REQUIRE(write_cache_file(folder.path("link"), bytes_of(5)) == 0);  // takes the link's place
  CHECK_FALSE(std::filesystem::exists(folder.path("victim")));
  CHECK(holds(folder.path("link"), bytes_of(5)));
}

TEST_CASE("what is no entry is a miss: it is not waited for, nor read, nor is memory allocated for it") {
  const TemporaryFolder folder;
  const Bytes bytes = bytes_of(50);
  const std::string path = folder.path("entry"), good = folder.path("good");
  REQUIRE(write_cache_file(good, bytes) == 0);
  const auto is_miss = [&] {
    ReadBuffer buffer;
    const bool none = !read_cache_file(path, bytes.size(), buffer) && buffer.capacity() == 0;
    return none &&
           (!std::filesystem::exists(std::filesystem::symlink_status(path)) || std::filesystem::is_directory(path));
  };
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(is_miss());
  std::filesystem::create_symlink(good, path);
  CHECK(is_miss());
  CHECK(holds(good, bytes));
  std::filesystem::create_symlink("/dev/zero", path);
  CHECK(is_miss());
  std::filesystem::create_hard_link(good, path);
  CHECK(holds(path, bytes));
  std::filesystem::remove(path);
  REQUIRE(write_cache_file(path, bytes) == 0);
  REQUIRE(chmod(path.c_str(), 0622) == 0);  // others can have written it
  CHECK(is_miss());
  for (const uint64_t size : {uint64_t{6} << 30, uint64_t{1} << 42}) {
    REQUIRE(write_cache_file(path, bytes) == 0);
    std::filesystem::resize_file(path, size);
    CHECK(is_miss());
  }
  std::filesystem::create_directory(path);
  CHECK(is_miss());
  CHECK(write_cache_file(path, bytes) == EISDIR);
  ReadBuffer buffer;
  CHECK_FALSE(read_cache_file(good, kAnyLength, buffer));
}
