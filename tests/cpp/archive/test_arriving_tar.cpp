// Archives that arrive in pieces: the members, and the errors, of the same archives read at once.
#include <doctest/doctest.h>

#include <string>

#include "archive/tar_text.h"
#include "core/io/tar/arriving_tar.h"

using namespace headrace;
using namespace headrace::test;

namespace {

SharedBytes bytes_of(const std::string& text) { return std::make_shared<const ByteBuffer>(text.begin(), text.end()); }

/// All members and the error, if there is one, in one text.
std::string at_once(const std::string& archive) {
  std::string text;
  try {
    const TarSamples made = tar_samples(Text(archive));
    for (size_t i = 0; i < made.sample.size(); ++i) {
      text += std::string(made.keys.c_str() + made.key_offsets[made.sample[i]]) + "|" +
              made.extensions[made.extension[i]] + "=" + archive.substr(made.offset[i], made.length[i]) + " ";
    }
    return text + (made.has_end ? "end" : "cut");
  } catch (const ArchiveError& error) {
    return error.what();
  }
}

std::string in_pieces(const std::string& archive, size_t piece, uint64_t begin = 0) {
  std::string text;
  ArrivingTar tar(archive.size(), begin, {"jpg", "png", "cls"});
  uint64_t fed = begin, last = begin;
  try {
    for (ArrivedMember member;;) {
      switch (tar.next(member)) {
        case ArrivingTar::Step::kEnd:
          return text + (tar.has_end() ? "end" : "cut");
        case ArrivingTar::Step::kMore:
          REQUIRE(fed < archive.size());
          tar.append(bytes_of(archive.substr(fed, piece)));
          fed += piece;
          break;
        case ArrivingTar::Step::kMember:
          CHECK(member.begin >= last);
          CHECK(member.begin + 512 <= member.offset);
          last = tar.position();
          CHECK(last >= member.offset + member.size);
          CHECK(member.wanted == !member.bytes.empty());
          text += member.key + "|" + member.extension + "=" + archive.substr(member.offset, member.size) + " ";
          if (member.wanted)
            CHECK(archive.substr(member.offset, member.size) == std::string(member.bytes.begin(), member.bytes.end()));
      }
    }
  } catch (const ArchiveError& error) {
    return error.what();
  }
}

const std::string kLong(300, 'n');

std::string all_kinds() {
  return member("a/", "", '5') + member("a/1.jpg", "one") + member("a/1.CLS", "7") +
         member("a/1.bin", std::string(5000, 'b')) + member("__meta__", "note") +
         member("././@LongLink", kLong + ".png" + '\0', 'L') + member("cut", "two") +
         member("x", pax("path", kLong + ".cls") + pax("mtime", "1.5"), 'x') + member("cut", "8") +
         member("a/3.jpg", std::string(3000, 'c')) + member("noname", std::string(2000, 'd')) + kEnd;
}

}  // namespace

TEST_CASE("pieces of any size give the members that the whole archive has") {
  const std::string archive = all_kinds(), expected = at_once(archive);
  REQUIRE(expected.ends_with("end"));
  for (const size_t piece : {1, 7, 511, 512, 513, 1024, 4096, 1 << 20}) CHECK(in_pieces(archive, piece) == expected);
}

TEST_CASE("what is damaged gives the same error") {
  const std::string first = member("a.jpg", "x");
  std::string damaged = first + member("b.jpg", "y") + kEnd;
  damaged[1024 + 3] ^= 1;
  const std::string cases[] = {damaged,
                               first + first + kEnd,
                               first + member("../b.jpg", "x") + kEnd,
                               "\x1F\x8B" + std::string(2000, 'x'),
                               std::string(2000, 'x'),
                               first + header("b.jpg", 1 << 20),
                               first + member("y.jpg", "x", 'S') + kEnd,
                               first};
  for (const std::string& archive : cases) {
    // The members before the error are given first.
    const std::string expected = at_once(archive), found = in_pieces(archive, 512);
    CHECK(found == expected);
  }
}

TEST_CASE("every truncation ends as the truncated archive does") {
  const std::string archive = all_kinds();
  for (size_t length = 1; length < archive.size(); length += 61) {
    const std::string cut = archive.substr(0, length);
    CHECK(in_pieces(cut, 700) == at_once(cut));
  }
}

TEST_CASE("a walk may begin at any sample") {
  const std::string archive = all_kinds(), whole = at_once(archive);
  const std::string head = member("a/", "", '5') + member("a/1.jpg", "one") + member("a/1.CLS", "7") +
                           member("a/1.bin", std::string(5000, 'b'));
  const std::string rest = in_pieces(archive, 512, head.size());
  CHECK(rest.size() > 600);
  CHECK(whole.ends_with(rest));
  CHECK(rest.find("bin") == std::string::npos);
}

TEST_CASE("bytes of members that are not wanted are not kept") {
  const std::string archive = member("a.bin", std::string(1 << 20, 'b')) + member("b.jpg", "x") + kEnd;
  ArrivingTar tar(archive.size(), 0, {"jpg"});
  ArrivedMember found;
  tar.append(bytes_of(archive.substr(0, 1024)));
  REQUIRE(tar.next(found) == ArrivingTar::Step::kMember);
  CHECK(found.extension == "bin");
  CHECK_FALSE(found.wanted);
  tar.append(bytes_of(archive.substr(1024, 1 << 20)));
  tar.append(bytes_of(archive.substr(1024 + (1 << 20))));
  tar.append(bytes_of("after the end"));
  REQUIRE(tar.next(found) == ArrivingTar::Step::kMember);
  CHECK(found.offset == archive.size() - 1536);
  CHECK(found.bytes[0] == 'x');
  CHECK(tar.next(found) == ArrivingTar::Step::kEnd);
  CHECK(tar.has_end());
}
