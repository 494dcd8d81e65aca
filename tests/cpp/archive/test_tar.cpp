// Tar archives in memory: what is read, what is refused, and every truncation of one archive.
#include <doctest/doctest.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/tar_text.h"
#include "core/io/tar/tar_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

std::string refused(const std::string& archive) {
  try {
    tar_samples(Text(archive));
  } catch (const ArchiveError& error) {
    return error.what();
  }
  return "";
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string all_of(const TarSamples& made, const std::string& archive) {
  std::string text;
  for (size_t i = 0; i < made.sample.size(); ++i) {
    text += std::string(made.keys.c_str() + made.key_offsets[made.sample[i]]) + "|" +
            made.extensions[made.extension[i]] + "=" + archive.substr(made.offset[i], made.length[i]) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("consecutive members with one key are a sample") {
  const std::string archive = member("a/1.jpg", "one") + member("a/1.CLS", " -7\n") + member("a/2.seg.png", "two") +
                              member("a/1.jpg", "again") + member("README", "no dot") + kEnd;
  const TarSamples made = tar_samples(Text(archive));
  CHECK(all_of(made, archive) == "a/1|jpg=one a/1|cls= -7\n a/2|seg.png=two a/1|jpg=again ");
  CHECK(made.key_offsets.size() == 3);
  CHECK(made.number[1] == -7);
  CHECK(made.number[0] == TarSamples::kNoNumber);
  CHECK(made.has_end);
}

TEST_CASE("folders, links, devices and WebDataset's notes are passed over") {
  const std::string archive = member("a/", "", '5') + member("a.jpg", "", '2') + header("b.jpg", 99, '1') +
                              member("__meta__", "x") + member("__x__/a.jpg", "x") + member("old/", "", '\0') +
                              member("c.jpg", "c", '\0') + kEnd;
  CHECK(all_of(tar_samples(Text(archive)), archive) == "c|jpg=c ");
}

TEST_CASE("long names and sizes of GNU and PAX headers") {
  const std::string name(300, 'n');
  std::string prefixed = header("b.jpg", 1);
  prefixed.replace(345, 6, "folder");
  sum(prefixed);
  std::string base256 = header("c.jpg", 0);
  base256.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x02", 12));
  sum(base256);
  const std::string archive = member("././@LongLink", name + ".jpg" + '\0', 'L') + member("cut", "1") +
                              member("x", pax("path", name + ".png") + pax("mtime", "1.5") + pax("size", "2"), 'x') +
                              header("cut", 0) + "22" + std::string(510, '\0') + prefixed + "3" +
                              std::string(511, '\0') + base256 + "44" + std::string(510, '\0') + kEnd;
  CHECK(all_of(tar_samples(Text(archive)), archive) == name + "|jpg=1 " + name + "|png=22 folder/b|jpg=3 c|jpg=44 ");
}

TEST_CASE("an archive without its end is read, and says so") {
  const TarSamples made = tar_samples(Text(member("a.jpg", "x")));
  CHECK(made.sample.size() == 1);
  CHECK_FALSE(made.has_end);
}

TEST_CASE("what is damaged or ambiguous is refused with its offset") {
  const std::string first = member("a.jpg", "x");
  std::string damaged = first + first;
  damaged[1024 + 3] ^= 1;
  CHECK(mentions(refused(damaged), "at byte 1024: the checksum"));
  CHECK(mentions(refused(std::string(2000, 'x')), "no tar archive"));
  CHECK(mentions(refused("\x1F\x8B" + std::string(2000, 'x')), "gzip"));
  CHECK(mentions(refused(""), "empty"));
  CHECK(mentions(refused(first + first + kEnd), "at byte 1024: the member 'a.jpg' repeats the extension 'jpg'"));
  CHECK(mentions(refused(member("a/../b.jpg", "x") + kEnd), "'..'"));
  CHECK(mentions(refused(member("s.jpg", "x", 'S') + kEnd), "sparse"));
  CHECK(mentions(refused(member("x", pax("GNU.sparse.major", "1"), 'x') + first + kEnd), "sparse"));
  CHECK(mentions(refused(member("x", pax("path", "y.jpg"), 'g') + first + kEnd), "one path"));
  CHECK(mentions(refused(member("x", pax("size", "1x"), 'x') + first + kEnd), "no number"));
  CHECK(mentions(refused(member("x", "99 path=y\n", 'x') + first + kEnd), "damaged"));
  CHECK(mentions(refused(member("x", "y.jpg", 'L') + kEnd), "followed by no file"));
  CHECK(mentions(refused(header("big.jpg", uint64_t{1} << 32) + kEnd), "truncated"));
  CHECK(mentions(refused(header("name", uint64_t{1} << 21, 'L') + std::string(size_t{1} << 21, 'n')), "2097152 bytes"));
  std::string negative = header("c.jpg", 0);
  negative.replace(124, 12, std::string(12, '\xFF'));
  sum(negative);
  CHECK(mentions(refused(negative), "no number"));
}

TEST_CASE("every truncation is refused, or leaves whole members") {
  const std::string archive = member("././@LongLink", std::string(200, 'n') + ".jpg", 'L') + member("cut", "one") +
                              member("x", pax("path", "b.jpg"), 'x') + member("cut", std::string(700, 'b'));
  int read = 0;
  for (size_t length = 0; length < archive.size(); ++length) {
    try {
      const TarSamples made = tar_samples(Text(archive.substr(0, length)));
      CHECK(made.sample.size() == 1);
      CHECK_FALSE(made.has_end);
      ++read;
    } catch (const ArchiveError&) {
    }
  }
  CHECK(read == 1);  // between the two members
}

TEST_CASE("names are split as by WebDataset's pattern") {
  const auto both = [](const char* name) {
    const TarName parts = split_tar_name(name);
    return std::string(parts.key) + "|" + std::string(parts.extension);
  };
  CHECK(both("a/b.c.d") == "a/b|c.d");
  CHECK(both("a.b/c") == "|");
  CHECK(both("a.b/c.d") == "a.b/c|d");
  CHECK(both("./a.jpg") == "./a|jpg");
  CHECK(both(".hidden") == "|");
  CHECK(both("a/.hidden") == "a/|hidden");
  CHECK(both("a.b/.hidden") == "|");
  CHECK(both("/.x") == "/|x");
  CHECK(both("a.") == "a|");
}

TEST_CASE("macOS's metadata are of no sample") {
  const std::array<uint8_t, 24> apple_double = {0x00, 0x05, 0x16, 0x07};
  const auto passed = [](std::string_view name, std::span<const uint8_t> head) {
    TarMember member;
    member.name = name;
    member.head = head;
    CHECK((is_of_macos(member) ? checked_name(member).key.empty() : true));
    return is_of_macos(member);
  };
  CHECK(passed("a/._b.jpg", apple_double));
  CHECK(passed("._b.jpg", apple_double));
  CHECK_FALSE(passed("a/._b.jpg", std::span(apple_double).first(3)));
  CHECK_FALSE(passed("a/._b.jpg", std::array<uint8_t, 24>{0xFF, 0xD8}));
  CHECK_FALSE(passed("a/b.jpg", apple_double));
  CHECK(passed("__MACOSX/a/b.jpg", {}));
  CHECK(passed("./__MACOSX/b.jpg", {}));
  CHECK_FALSE(passed("a__MACOSX/b.jpg", {}));
  CHECK_FALSE(passed("a/__MACOSX.jpg", {}));
  CHECK(passed("a/.DS_Store", {}));
  CHECK_FALSE(passed("a/b.DS_Store", {}));
}

TEST_CASE("a name in a message has no control characters, and an end") {
  CHECK(quoted("a b.jpg") == "'a b.jpg'");
  CHECK(quoted({"a\0\n\x1B\x7F", 5}) == "'a\\x00\\x0a\\x1b\\x7f'");
  CHECK(quoted("\xFF") == "'\xFF'");
  CHECK(quoted(std::string(201, 'n')) == "'" + std::string(200, 'n') + "...'");
}
