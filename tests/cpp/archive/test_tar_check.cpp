// An index compared with its archive: every member is found where it is, and nowhere else.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "archive/tar_text.h"
#include "core/base/error.h"
#include "core/base/platform/file_time.h"
#include "core/io/source/reader.h"
#include "core/io/tar/tar_check.h"
#include "core/io/tar/tar_samples.h"
#include "support/temporary_folder.h"

using namespace headrace;
using namespace headrace::test;

namespace {

std::string long_header(const std::string& name, const std::string& data) {
  return member("././@LongLink", name + '\0', 'L') + member(name.substr(0, 100), data);
}

std::string pax_header(const std::string& name, const std::string& data) {
  return member("PaxHeaders/x", pax("mtime", "1.5") + pax("path", name), 'x') + member("short", data);
}

std::string prefixed(const std::string& prefix, const std::string& name, const std::string& data) {
  std::string block = header(name, data.size());
  block.replace(345, prefix.size(), prefix);
  sum(block);
  return block + data + std::string((512 - data.size() % 512) % 512, '\0');
}

/// An archive of all kinds of headers, with its index.
struct Archive {
  std::string bytes;
  TarSamples index;
  TemporaryFolder folder;

  Archive() {
    const std::string deep(120, 'd');
    for (int i = 0; i < 6; ++i) {
      const std::string number = std::to_string(i);
      bytes += member("a/" + number + ".CLS", number + "\n") + member("a/" + number + ".jpg", "pix" + number);
      bytes += long_header(deep + number + ".jpg", "pix" + number) + member("b" + number + ".cls", "7" + number);
      bytes +=
          pax_header("\xC3\xA9" + number + ".jpg", "pix" + number) + prefixed(deep, number + ".jpg", "pix" + number);
    }
    bytes += kEnd;
    index = tar_samples(Text(bytes));
  }
  IndexedMember indexed_member(size_t i) const {
    return {index.offset[i], index.length[i], index.keys.c_str() + index.key_offsets[index.sample[i]],
            index.extensions[index.extension[i]]};
  }
  std::string file() const { return folder.file("a.tar", {bytes.begin(), bytes.end()}); }
};

/// The samples of an archive that have an image and a number, as a table.
struct Table {
  std::string path, keys;
  std::vector<uint64_t> key_offsets, offsets, lengths, number_offsets, number_lengths;
  std::vector<int64_t> numbers;
  std::vector<uint8_t> choice;
  std::vector<uint32_t> file_of;
  FileStamp stamp;

  Table(const TemporaryFolder& folder, int count, size_t distance) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      const std::string key = std::to_string(100 + i);
      key_offsets.push_back(keys.size());
      keys += key + '\0';
      bytes += member(key + ".cls", std::to_string(i));
      number_offsets.push_back(bytes.size() - 512);
      number_lengths.push_back(std::to_string(i).size());
      if (distance > 0) bytes += member(key + ".bin", std::string(distance, 'x'));
      const std::string image = "image " + key;
      bytes += member(key + ".jpg", image);
      offsets.push_back(bytes.size() - 512);
      lengths.push_back(image.size());
      numbers.push_back(i);
      choice.push_back(0);
      file_of.push_back(0);
    }
    bytes += kEnd;
    path = folder.file("t.tar", {bytes.begin(), bytes.end()});
    struct stat info{};
    REQUIRE(stat(path.c_str(), &info) == 0);
    stamp = {bytes.size(), modified_ns(info)};
  }
  std::shared_ptr<const TarCheck> check() const {
    const auto* begin = reinterpret_cast<const uint8_t*>(keys.data());
    return std::make_shared<TarCheck>(
        std::span(begin, keys.size()), key_offsets,
        std::vector<TarField>{{{"jpg"}, choice, offsets, lengths, {}},
                              {{"cls"}, choice, number_offsets, number_lengths, numbers}});
  }
  std::unique_ptr<FileRanges> ranges() const {
    return std::make_unique<FileRanges>(path + '\0', std::vector<uint64_t>{0}, std::vector<FileStamp>{stamp}, file_of,
                                        offsets, lengths, DescriptorCache::of_process(), check());
  }
  std::string read(const FileRanges& table, int64_t row) const {
    Reader reader;
    try {
      const auto got = reader.read(table.at(row));
      return {got.begin(), got.end()};
    } catch (const Error& error) {
      return error.what();
    }
  }
};

}  // namespace

TEST_CASE("every member is where the index of its archive says, and no other one is") {
  const Archive archive;
  const Text source(archive.bytes);
  REQUIRE(archive.index.sample.size() == 36);
  for (size_t i = 0; i < archive.index.sample.size(); ++i) {
    CAPTURE(i);
    int64_t number = 0;
    CHECK(is_member_at(source, archive.indexed_member(i), &number));
    CHECK(number == archive.index.number[i]);
    for (size_t k = 0; k < archive.index.sample.size(); ++k) {
      IndexedMember other = archive.indexed_member(i);
      other.offset = archive.indexed_member(k).offset;
      CHECK(is_member_at(source, other) == (i == k));
      IndexedMember renamed = archive.indexed_member(i);
      renamed.key = archive.indexed_member(k).key;
      CHECK(is_member_at(source, renamed) == (archive.index.sample[i] == archive.index.sample[k]));
    }
    for (const uint64_t wrong :
         {uint64_t{0}, uint64_t{1}, uint64_t{511}, archive.indexed_member(i).offset + 1,
          archive.indexed_member(i).offset + 512, source.size(), source.size() + 512, UINT64_MAX}) {
      IndexedMember other = archive.indexed_member(i);
      other.offset = wrong;
      CHECK_FALSE(is_member_at(source, other));
    }
    IndexedMember longer = archive.indexed_member(i);
    ++longer.size;
    CHECK_FALSE(is_member_at(source, longer));
  }
}

TEST_CASE("marks are those of names that a header holds") {
  const Archive archive;
  for (size_t i = 0; i < archive.index.sample.size(); ++i) {
    const IndexedMember indexed = archive.indexed_member(i);
    const uint64_t mark = name_mark(indexed.key, indexed.extension);
    const std::string block = archive.bytes.substr(indexed.offset - 512, 512);
    const std::span<const uint8_t> held(reinterpret_cast<const uint8_t*>(block.data()), block.size());
    if (mark != 0) CHECK(header_mark(held) == mark);
    CHECK((mark == 0) == (indexed.key.size() > 96 || indexed.key[0] == '\xC3'));
    if (mark != 0) CHECK(is_marked_at(Text(archive.bytes), indexed.offset, indexed.size, mark));
    CHECK_FALSE(is_marked_at(Text(archive.bytes), indexed.offset, indexed.size, mark ^ 2));
  }
  CHECK(name_mark("a", "b.c") == name_mark("a.b", "c"));  // one name
  CHECK(name_mark("a", "jpg") != name_mark("b", "jpg"));
  CHECK(header_mark(std::vector<uint8_t>(512, 0)) == 0);
  CHECK(header_mark({}) == 0);
}

TEST_CASE("rows are compared once, when they are read") {
  for (const size_t distance : {0, 10'000}) {
    const TemporaryFolder folder;
    const Table table(folder, 70, distance);
    const auto check = table.check();
    const FileRanges ranges(table.path + '\0', {0}, {table.stamp}, table.file_of, table.offsets, table.lengths,
                            DescriptorCache::of_process(), check);
    for (int round = 0; round < 2; ++round) {
      for (int64_t row = 0; row < 70; ++row) {
        CHECK(check->wanted(row).has_value() == (round == 0));
        CHECK(table.read(ranges, row) == "image " + std::to_string(100 + row));
      }
    }
  }
}

TEST_CASE("a wrong index is an error of the rows that it is wrong about") {
  for (const size_t distance : {0, 10'000}) {
    const TemporaryFolder folder;
    const Table honest(folder, 20, distance);
    const auto fails = [&](const Table& table, int64_t row) {
      const auto ranges = table.ranges();
      for (int64_t other = 0; other < 20; ++other) {
        const bool refused = table.read(*ranges, other).starts_with("the index does not fit the shard");
        if (refused != (other == row || other == row + 1)) return false;
      }
      return true;
    };
    Table offsets = honest;
    std::swap(offsets.offsets[4], offsets.offsets[5]);
    CHECK(fails(offsets, 4));
    Table numbers = honest;
    std::swap(numbers.numbers[6], numbers.numbers[7]);
    CHECK(fails(numbers, 6));
    Table places = honest;
    std::swap(places.number_offsets[8], places.number_offsets[9]);
    CHECK(fails(places, 8));
    Table keys = honest;
    std::swap(keys.key_offsets[0], keys.key_offsets[1]);
    CHECK(fails(keys, 0));
    Table both = honest;  // numbers with their places: the names tell
    std::swap(both.number_offsets[2], both.number_offsets[3]);
    std::swap(both.numbers[2], both.numbers[3]);
    CHECK(fails(both, 2));
    Table outside = honest;
    outside.number_offsets[19] = UINT64_MAX - 5;
    CHECK(outside.read(*outside.ranges(), 19).starts_with("the index does not fit"));
  }
}

TEST_CASE("a mark changes with all that is said of a row") {
  const TemporaryFolder folder;
  const Table honest(folder, 2, 0);
  const uint64_t mark = honest.check()->row_hash(0);
  CHECK(honest.check()->row_hash(0) == mark);
  CHECK(honest.check()->row_hash(1) != mark);
  Table other = honest;
  other.numbers[0] = 5;
  CHECK(other.check()->row_hash(0) != mark);
  other = honest;
  other.number_offsets[0] += 512;
  CHECK(other.check()->row_hash(0) != mark);
  other = honest;
  other.keys[0] = 'x';
  CHECK(other.check()->row_hash(0) != mark);
}

TEST_CASE("arrays that do not fit are refused") {
  const TemporaryFolder folder;
  const Table honest(folder, 2, 0);
  Table table = honest;
  table.keys.back() = 'x';
  CHECK_THROWS_AS(table.check(), std::out_of_range);
  table = honest;
  table.key_offsets[1] = 1000;
  CHECK_THROWS_AS(table.check(), std::out_of_range);
  table = honest;
  table.choice[0] = 1;
  CHECK_THROWS_AS(table.check(), std::out_of_range);
  table = honest;
  table.numbers.pop_back();
  CHECK_THROWS_AS(table.check(), std::out_of_range);
}
