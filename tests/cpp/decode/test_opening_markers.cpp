// The markers before a file's first scan: which files are left to Pillow, and that no byte outside of a header is read.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/jpeg/sequential/opening_markers.h"

using namespace headrace;
using namespace std::string_literals;

namespace {

using Bytes = std::vector<uint8_t>;

std::string segment(int marker, const std::string& body) {
  const size_t length = body.size() + 2;
  return "\xFF"s + static_cast<char>(marker) + static_cast<char>(length >> 8) + static_cast<char>(length & 255) + body;
}

const std::string kFrame = segment(0xC0, "\x08\0\x07\x01\x05\x03\x01\x21\0\x02\x11\x01\x03\x11\x01"s);
const std::string kGray = segment(0xC2, "\x08\0\x07\x01\x05\x01\x01\x11\0"s);
const std::string kTables = segment(0xDB, std::string(65, '\0') + '\x01' + std::string(64, '\x07'));
const std::string kScan = segment(0xDA, "\x01\x01\0\0\x3F\0"s);
const std::string kProfile = segment(0xE2, "ICC_PROFILE\0\x01\x01profile"s);

/// A file of 7 rows and 261 columns with these segments before its frame and its scan.
std::string file_with(const std::string& segments, const std::string& frame = kFrame) {
  return "\xFF\xD8" + segments + frame + kScan;
}

/// In memory that ends where the file does, which a sanitizer watches.
std::optional<OpeningMarkers> read(const std::string& file, size_t length = std::string::npos) {
  static std::vector<Bytes> kept;  // what is found refers to it
  const std::string part = file.substr(0, length);
  kept.emplace_back(part.begin(), part.end());
  kept.back().shrink_to_fit();
  return read_opening_markers(kept.back());
}

bool is_read(const std::string& segments) { return read(file_with(segments)).has_value(); }

/// Whether all segments are where they say.
bool lie_within(const OpeningMarkers& found, std::span<const uint8_t> head) {
  const uint8_t* past = head.data() + 2;
  for (const auto& [marker, kind, body] : found.segments) {
    if (body.data() < past + 4 || body.data() + body.size() > head.data() + found.end) return false;
    if (body.data()[-4] != 0xFF || body.data()[-3] != marker) return false;
    if (static_cast<size_t>(body.data()[-2] << 8 | body.data()[-1]) != body.size() + 2) return false;
    past = body.data() + body.size();
  }
  return found.end <= head.size();
}

}  // namespace

TEST_CASE("the segments of a usual file, in their order") {
  const std::string file = file_with(segment(0xE5, "") + kTables + segment(0xC4, std::string(17, '\0')) + kProfile +
                                     segment(0xDD, "\0\x04"s) + segment(0xFE, "said"));
  const auto found = read(file + "data of the scan");
  REQUIRE(found.has_value());
  CHECK(found->end == file.size());
  std::vector<int> markers;
  for (const OpeningSegment& one : found->segments) markers.push_back(one.marker);
  CHECK(markers == std::vector<int>{0xE5, 0xDB, 0xE2, 0xFE, 0xC0});
  CHECK(found->segments[0].body.empty());
  CHECK(found->segments[1].body.size() == 130);
  CHECK(std::string(found->segments[3].body.begin(), found->segments[3].body.end()) == "said");
  CHECK(read(file_with("", kGray)).has_value());
}

TEST_CASE("a header that ends too early is left, wherever it ends") {
  const std::string file = file_with(segment(0xE0, "JFIF\0\x01\x02\x01\0\x48\0\x48\0\0"s) + kTables + kProfile);
  REQUIRE(read(file).has_value());
  for (size_t length = 0; length < file.size(); ++length) CHECK_FALSE(read(file, length).has_value());
}

TEST_CASE("what Pillow reads more of is left") {
  const std::string jfif = "JFIF\0\x01\x02\x01\0\x48\0\x48\0\0"s, adobe = "Adobe\0\x64\0\0\0\0\x01"s;
  CHECK(is_read(segment(0xE0, jfif)));
  CHECK(is_read(segment(0xE0, jfif.substr(0, 12))));
  CHECK_FALSE(is_read(segment(0xE0, jfif.substr(0, 11))));
  CHECK(is_read(segment(0xE0, "JFI")));
  std::string centimetres = jfif;
  centimetres[7] = 2;
  CHECK_FALSE(is_read(segment(0xE0, centimetres)));
  CHECK(is_read(segment(0xEE, adobe)));
  CHECK_FALSE(is_read(segment(0xEE, adobe.substr(0, 11))));
  CHECK(is_read(segment(0xEE, adobe.substr(0, 4))));
  CHECK_FALSE(is_read(segment(0xE1, "Exif\0\0"s)));
  CHECK(is_read(segment(0xE1, "Exif\0"s)));
  CHECK_FALSE(is_read(segment(0xE1, "http://ns.adobe.com/xap/1.0/\0"s)));
  CHECK_FALSE(is_read(segment(0xE2, "FPXR\0"s)));
  CHECK_FALSE(is_read(segment(0xE2, "MPF\0"s)));
  CHECK(is_read(segment(0xE2, "MPF")));
  CHECK_FALSE(is_read(segment(0xED, "Photoshop 3.0\0"s)));
  for (int marker = 0xE0; marker < 0xF0; ++marker) CHECK(is_read(segment(marker, "unknown")));
}

TEST_CASE("profiles in one piece before the frame are read") {
  CHECK(is_read(kProfile));
  CHECK(is_read(segment(0xE2, "ICC_PROFILE\0\x01\x01"s)));
  CHECK_FALSE(is_read(segment(0xE2, "ICC_PROFILE\0\x01"s)));
  CHECK_FALSE(is_read(segment(0xE2, "ICC_PROFILE\0\x01\x02"s)));
  CHECK_FALSE(is_read(kProfile + kProfile));
  CHECK_FALSE(read(file_with(kFrame, kProfile)).has_value());
}

TEST_CASE("frames and tables of other kinds are left") {
  const auto with_frame = [](size_t at, int value) {
    std::string frame = kFrame;
    frame[4 + at] = static_cast<char>(value);
    return read(file_with("", frame)).has_value();
  };
  CHECK(with_frame(0, 8));
  CHECK_FALSE(with_frame(0, 12));
  for (const int components : {0, 1, 2, 4, 255}) CHECK_FALSE(with_frame(5, components));
  CHECK_FALSE(read(file_with(kFrame)).has_value());  // two
  CHECK_FALSE(read("\xFF\xD8" + kScan).has_value());
  CHECK_FALSE(read("\xFF\xD8" + segment(0xC0, "\x08\0\x07\x01\x05"s) + kScan).has_value());
  CHECK_FALSE(is_read(segment(0xDB, std::string(64, '\0'))));
  CHECK_FALSE(is_read(segment(0xDB, std::string(66, '\0'))));
  CHECK_FALSE(is_read(segment(0xDB, '\x10' + std::string(128, '\0'))));
  CHECK(is_read(segment(0xDB, "")));
}

TEST_CASE("other markers, and bytes between segments, are left") {
  for (int marker = 0; marker < 256; ++marker) {
    const bool usual = marker == 0xC4 || marker == 0xDB || marker == 0xDD || marker == 0xFE || marker >> 4 == 0xE;
    if (marker >= 0xC0 && marker <= 0xC2) continue;  // a frame
    CHECK(is_read(segment(marker, "")) == usual);
  }
  CHECK_FALSE(is_read("\xFF"));
  CHECK_FALSE(is_read("\0"s));
  CHECK_FALSE(is_read("\xFF\xE5\0\x01"s));
  CHECK_FALSE(is_read("\xFF\xE5\0\0"s));
  CHECK_FALSE(read("\xFF\xD9" + file_with("").substr(2)).has_value());
}

TEST_CASE("changed headers are read within their bytes") {
  const std::string file =
      file_with(segment(0xE0, "JFIF\0\x01\x02\x01\0\x48\0\x48\0\0"s) + segment(0xEE, "Adobe\0\x64\0\0\0\0\x01"s) +
                kProfile + kTables + segment(0xFE, "said"));
  std::mt19937 random(1);
  const auto draw = [&random](size_t below) { return static_cast<size_t>(random() % below); };
  int found_some = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes data(file.begin(), file.end());
    for (size_t i = 0; i <= draw(3); ++i) data[draw(data.size())] = static_cast<uint8_t>(random());
    data.resize(data.size() - draw(2) * draw(data.size()));
    data.shrink_to_fit();
    const auto found = read_opening_markers(data);
    if (!found) continue;
    ++found_some;
    CHECK(lie_within(*found, data));
  }
  CHECK(found_some > 1000);
}
