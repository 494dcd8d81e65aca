// The header parser: what it reads, what it leaves to Pillow, and that no input makes it read out of bounds.
#include <doctest/doctest.h>

#include <string>

#include "core/jpeg/sequential/jpeg_header.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::string_literals;
using Bytes = std::vector<uint8_t>;

namespace {

const Bytes& plain() {
  static const Bytes jpeg = make_jpeg({.h = {2, 1, 1}, .v = {2, 1, 1}});
  return jpeg;
}

bool is_plain(const Bytes& jpeg) { return parse_jpeg_header(jpeg).not_plain == nullptr; }

/// `jpeg` without the segment at `marker`.
Bytes without(Bytes jpeg, int marker) {
  const size_t at = find_marker(jpeg, marker);
  const auto from = jpeg.begin() + static_cast<ptrdiff_t>(at);
  jpeg.erase(from, from + 2 + (jpeg[at + 2] << 8 | jpeg[at + 3]));
  return jpeg;
}

/// `jpeg` with byte `offset` after the length of segment `marker` set to `value`.
Bytes patched(Bytes jpeg, int marker, size_t offset, int value) {
  jpeg[find_marker(jpeg, marker) + 4 + offset] = static_cast<uint8_t>(value);
  return jpeg;
}

std::string exif(const std::string& entries, int count) {
  return "Exif\0\0II*\0\x08\0\0\0"s + static_cast<char>(count) + '\0' + entries + "\0\0\0\0"s;
}

}  // namespace

TEST_CASE("the fields of a plain file") {
  const JpegHeader header = parse_jpeg_header(plain());
  CHECK(header.not_plain == nullptr);
  CHECK(header.size == Size{37, 29});
  CHECK(header.components == 3);
  CHECK(header.component[0].h == 2);
  CHECK(header.component[0].v == 2);
  CHECK(header.component[2].id == 3);
  CHECK(header.component[2].h == 1);
  CHECK_FALSE(header.progressive);
  CHECK(header.jfif);
  CHECK(header.adobe_transform == -1);
  CHECK(header.scans == 1);
  CHECK(header.scan_begin == find_marker(plain(), 0xDA) + 2 + 12);
  CHECK(header.scan_end == plain().size() - 2);
}

TEST_CASE("every kind that libjpeg writes is plain, but CMYK") {
  for (const bool progressive : {false, true})
    for (const int rows : {0, 1})
      for (const int components : {1, 3, 4}) {
        CAPTURE(progressive);
        CAPTURE(components);
        const Bytes jpeg = make_jpeg({.components = components, .progressive = progressive, .restart_rows = rows});
        const JpegHeader header = parse_jpeg_header(jpeg);
        CHECK((header.not_plain == nullptr) == (components != 4));
        CHECK(header.components == components);
        CHECK(header.progressive == progressive);
        if (components != 4 && !progressive) CHECK(header.restart_interval == rows * 5);
        if (components == 3) CHECK(header.scans == (progressive ? 10 : 1));
      }
  CHECK(is_plain(make_jpeg({.rgb = true})));
  CHECK(parse_jpeg_header(make_jpeg({.rgb = true})).adobe_transform == 0);
  CHECK(parse_jpeg_header(make_jpeg({.interleaved = false})).scans == 3);
  CHECK(is_plain(make_jpeg({.interleaved = false})));
}

TEST_CASE("no prefix of a file is plain, and none is read past its end") {
  for (const bool progressive : {false, true}) {
    const Bytes jpeg = make_jpeg({.progressive = progressive, .restart_rows = 1});
    for (size_t size = 0; size < jpeg.size(); ++size) {
      const Bytes prefix(jpeg.begin(), jpeg.begin() + static_cast<ptrdiff_t>(size));  // ASan sees its end
      CHECK_FALSE(is_plain(prefix));
    }
    CHECK(is_plain(jpeg));
  }
}

TEST_CASE("changed bytes do no harm") {
  const Bytes jpeg = with_segment(make_jpeg({.progressive = true}), 0xE1, exif("\x12\1\3\0\1\0\0\0\6\0\0\0"s, 1));
  for (size_t at = 0; at < jpeg.size(); ++at)
    for (const int value : {0x00, 0x01, 0x7F, 0xDA, 0xFF}) {
      Bytes changed = jpeg;
      changed[at] = static_cast<uint8_t>(value);
      const JpegHeader header = parse_jpeg_header(changed);
      if (header.not_plain == nullptr) CHECK(header.scan_end <= changed.size());
    }
}

TEST_CASE("what follows EOI is nobody's business; what precedes it is") {
  Bytes jpeg = plain();
  jpeg.insert(jpeg.end(), {0xFF, 0xD8, 0xFF, 0x01, 0x02});
  CHECK(is_plain(jpeg));

  Bytes filled = plain();
  filled.insert(filled.end() - 2, {0xFF, 0xFF});  // fill bytes before a marker
  CHECK(is_plain(filled));
  filled = plain();
  filled.insert(filled.begin() + 2, {0xFF, 0xFF});
  CHECK(is_plain(filled));

  Bytes junk = plain();
  junk.insert(junk.begin() + static_cast<ptrdiff_t>(find_marker(junk, 0xDB)), {0x00, 0x11});
  CHECK_FALSE(is_plain(junk));
  Bytes stuffed = plain();
  stuffed.insert(stuffed.end() - 2, {0xFF, 0xFF, 0x00});
  CHECK_FALSE(is_plain(stuffed));
  Bytes later = plain();
  later.insert(later.end() - 2, {0xFF, 0xDC, 0x00, 0x04, 0x00, 0x08});  // DNL
  CHECK_FALSE(is_plain(later));
}

TEST_CASE("restart markers: in order, as many as the interval asks for, and only then") {
  const Bytes jpeg = make_jpeg({.restart_rows = 1});
  const JpegHeader header = parse_jpeg_header(jpeg);
  REQUIRE(header.not_plain == nullptr);
  size_t first = header.scan_begin;
  while (!(jpeg[first] == 0xFF && jpeg[first + 1] == 0xD0)) ++first;
  Bytes renumbered = jpeg;
  renumbered[first + 1] = 0xD1;
  CHECK_FALSE(is_plain(renumbered));
  Bytes removed = jpeg;
  removed.erase(removed.begin() + static_cast<ptrdiff_t>(first), removed.begin() + static_cast<ptrdiff_t>(first) + 2);
  CHECK_FALSE(is_plain(removed));
  Bytes trailing = jpeg;
  trailing.insert(trailing.end() - 2, {0xFF, 0xD3});
  CHECK_FALSE(is_plain(trailing));
  CHECK_FALSE(is_plain(without(jpeg, 0xDD)));
}

TEST_CASE("frames that libjpeg or Pillow reads in its own way") {
  CHECK_FALSE(is_plain(patched(plain(), 0xC0, 0, 12)));    // precision
  CHECK_FALSE(is_plain(patched(plain(), 0xC0, 2, 0)));     // height 0
  CHECK_FALSE(is_plain(patched(plain(), 0xC0, 5, 2)));     // components
  CHECK_FALSE(is_plain(patched(plain(), 0xC0, 7, 0x52)));  // sampling 5x2
  CHECK_FALSE(is_plain(patched(plain(), 0xC0, 7, 0x02)));
  CHECK_FALSE(is_plain(patched(plain(), 0xC0, 7, 0x44)));  // 18 blocks in an MCU
  CHECK_FALSE(is_plain(patched(plain(), 0xC0, 9, 1)));     // two components of one name
  CHECK_FALSE(is_plain(patched(plain(), 0xC0, 8, 2)));     // no such quantization table
  for (const int marker : {0xC3, 0xC5, 0xC9, 0xCA, 0xDE}) {
    Bytes jpeg = plain();
    jpeg[find_marker(jpeg, 0xC0) + 1] = static_cast<uint8_t>(marker);
    CHECK_FALSE(is_plain(jpeg));
  }
  Bytes extended = plain();
  extended[find_marker(extended, 0xC0) + 1] = 0xC1;
  CHECK(is_plain(extended));
  Bytes wide = patched(patched(plain(), 0xC0, 3, 0xFF), 0xC0, 4, 0xFF);
  CHECK_FALSE(is_plain(wide));
  CHECK(parse_jpeg_header(wide).size == Size{65535, 29});  // the size is reported all the same
}

TEST_CASE("tables must be there, and make sense") {
  CHECK_FALSE(is_plain(without(plain(), 0xC4)));
  CHECK_FALSE(is_plain(without(plain(), 0xDB)));
  CHECK_FALSE(is_plain(patched(plain(), 0xC4, 0, 0x04)));
  CHECK_FALSE(is_plain(patched(plain(), 0xC4, 1, 3)));    // three codes of one bit
  CHECK_FALSE(is_plain(patched(plain(), 0xC4, 17, 16)));  // a DC difference of 16 bits
  CHECK_FALSE(is_plain(patched(plain(), 0xDB, 0, 0x20)));
  CHECK_FALSE(is_plain(patched(plain(), 0xDA, 2, 0x22)));  // tables 2
}

TEST_CASE("scans") {
  CHECK_FALSE(is_plain(patched(plain(), 0xDA, 7, 1)));   // Ss
  CHECK_FALSE(is_plain(patched(plain(), 0xDA, 8, 62)));  // Se
  CHECK_FALSE(is_plain(patched(plain(), 0xDA, 1, 9)));   // no such component
  // A progressive file cut between its scans and closed by EOI: libjpeg smooths it, and its versions differ.
  Bytes jpeg = make_jpeg({.progressive = true});
  const JpegHeader header = parse_jpeg_header(jpeg);
  REQUIRE(header.not_plain == nullptr);
  jpeg.resize(header.scan_end);
  jpeg.insert(jpeg.end(), {0xFF, 0xD9});
  CHECK_FALSE(is_plain(jpeg));
}

TEST_CASE("application segments: what they say") {
  const std::string orientation = "\x12\1\3\0\1\0\0\0\6\0\0\0"s;
  CHECK(parse_jpeg_header(with_segment(plain(), 0xE1, exif(orientation, 1))).exif_orientation == 6);
  CHECK(is_plain(with_segment(plain(), 0xE1, exif(orientation, 1))));
  const std::string motorola = "Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\3\0\0\0\0\0\0"s;
  CHECK(parse_jpeg_header(with_segment(plain(), 0xE1, motorola)).exif_orientation == 3);
  CHECK(parse_jpeg_header(plain()).exif_orientation == 0);
  CHECK(parse_jpeg_header(with_segment(without(plain(), 0xE0), 0xEE, "Adobe\0d\0\0\0\0\1"s)).adobe_transform == 1);
  CHECK(is_plain(with_segment(plain(), 0xE2, "ICC_PROFILE\0\1\1abc"s)));
  CHECK(is_plain(with_segment(plain(), 0xED, "Photoshop 3.0\0"s + "8BIM\4\4\0\0\0\0\0\2ab"s)));
}

TEST_CASE("whether Pillow may turn the image") {
  const auto turned = [](const std::string& segment) {
    return parse_jpeg_header(with_segment(plain(), 0xE1, segment)).turned;
  };
  const auto entry = [](char type, char items, char value) {
    return "\x12\1"s + type + "\0"s + items + "\0\0\0"s + value + "\0\0\0"s;
  };
  CHECK_FALSE(parse_jpeg_header(plain()).turned);
  CHECK_FALSE(turned(exif(entry(3, 1, 1), 1)));
  for (const char value : {2, 6, 8, 0, 9}) CHECK(turned(exif(entry(3, 1, value), 1)));
  CHECK(turned(exif(entry(4, 1, 1), 1)));  // a LONG
  CHECK(turned(exif(entry(3, 2, 1), 1)));
  CHECK(turned(exif(entry(3, 1, 1) + entry(3, 1, 6), 2)));
  CHECK(turned(exif(entry(3, 1, 1), 2)));  // cut short
  const std::string packet = "http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation"s;
  CHECK_FALSE(turned(packet + "=\"1\"/>"));
  CHECK_FALSE(turned(packet + ">1</tiff"));
  CHECK(turned(packet + "=\"6\"/>"));
  CHECK(turned(packet + ">8</tiff"));
  CHECK(turned(packet + "=\"1\" tiff:Orientation=\"3\""));
  CHECK(turned(packet));
  CHECK_FALSE(turned("http://ns.adobe.com/xap/1.0/\0<x/>"s));
}

TEST_CASE("a file of several pictures is plain if its index is") {
  const std::string number = "\1\xB0\4\0\1\0\0\0\2\0\0\0"s, pictures = "\2\xB0\7\0\x20\0\0\0\x26\0\0\0"s;
  const std::string directory = "MPF\0II*\0\x08\0\0\0\2\0"s, next = "\0\0\0\0"s;
  const std::string first = "\0\0\3\0"s + std::string(12, '\0'), second(16, '\0');
  const auto index = [&](const std::string& entries, const std::string& list) {
    return with_segment(plain(), 0xE2, directory + entries + next + list);
  };
  CHECK(is_plain(index(number + pictures, first + second)));
  CHECK_FALSE(is_plain(index(number + pictures, first)));                                // the list is cut short
  CHECK_FALSE(is_plain(index(number + number, first + second)));                         // and here it is missing
  CHECK_FALSE(is_plain(index(pictures + pictures, first + second)));                     // the number is missing
  CHECK_FALSE(is_plain(index(number + pictures, "\0\0\3\1"s + std::string(28, '\0'))));  // not a JPEG
  std::string words = pictures;
  words[2] = 2;  // ASCII
  CHECK_FALSE(is_plain(index(number + words, first + second)));
  words[2] = 0;  // no such type
  CHECK_FALSE(is_plain(index(number + words, first + second)));
  CHECK_FALSE(is_plain(with_segment(index(number + pictures, first + second), 0xE2,
                                    directory + number + pictures + next + first + second)));  // two of them
  CHECK_FALSE(is_plain(with_segment(plain(), 0xE2, "MPF\0"s)));
}

TEST_CASE("application segments: what Pillow may refuse or libjpeg warn about") {
  CHECK_FALSE(is_plain(with_segment(plain(), 0xE0, "JFIF\0\1"s)));
  CHECK_FALSE(is_plain(with_segment(plain(), 0xE0, "JFIF\0\2\1\0\0\1\0\1\0\0"s)));
  CHECK_FALSE(is_plain(with_segment(plain(), 0xEE, "Adobe\0"s)));
  CHECK_FALSE(is_plain(with_segment(without(plain(), 0xE0), 0xEE, "Adobe\0d\0\0\0\0\2"s)));
  CHECK(is_plain(with_segment(plain(), 0xEE, "Adobe\0d\0\0\0\0\2"s)));  // JFIF wins
  CHECK_FALSE(is_plain(with_segment(plain(), 0xE2, "ICC_PROFILE\0\1"s)));
  CHECK_FALSE(is_plain(with_segment(plain(), 0xED, "Photoshop 3.0\0"s + "8BIM\4\4"s)));
  CHECK_FALSE(is_plain(with_segment(plain(), 0xE1, "Exif\0\0"s)));
  CHECK_FALSE(is_plain(with_segment(plain(), 0xE1, exif("", 9))));                             // cut short
  CHECK_FALSE(is_plain(with_segment(plain(), 0xE1, exif("\x1A\1\2\0\1\0\0\0\0\0\0\0"s, 1))));  // a text
  CHECK_FALSE(is_plain(with_segment(with_segment(plain(), 0xE1, exif("", 0)), 0xE1, exif("", 0))));
}

TEST_CASE("an EXIF segment in which Pillow looks for the resolution, and warns of what is odd") {
  const std::string text = "\x0E\1\2\0"s, inside = "\6\0\0\0\x1A\0\0\0"s, outside = "\xF4\1\0\0\x0F\x27\0\0"s;
  const Bytes bare = without(plain(), 0xE0);
  const auto with = [](const Bytes& jpeg, const std::string& segment) { return with_segment(jpeg, 0xE1, segment); };
  const std::string sound = exif(text + inside, 1) + "words\0"s;
  CHECK(is_plain(with(bare, sound)));
  CHECK_FALSE(is_plain(with(bare, exif(text + outside, 1))));
  // 32 bytes twice, of a segment of less than 64: too many in all, though each is inside.
  const std::string pair = text + "\x20\0\0\0\x0A\0\0\0"s, other = "\x0F\1\2\0\x20\0\0\0\x0A\0\0\0"s;
  CHECK(is_plain(with(bare, exif(pair, 1) + std::string(20, 'x'))));
  CHECK_FALSE(is_plain(with(bare, exif(pair + other, 2) + std::string(20, 'x'))));
  const std::string ifd = "\x0D\0\x0D\0\2\0\0\0\x0F\x27\0\0"s, odd = "\x0D\0\x0E\0\2\0\0\0\x0F\x27\0\0"s;
  CHECK_FALSE(is_plain(with(bare, exif(ifd, 1))));  // type 13, which Pillow knows
  CHECK(is_plain(with(bare, exif(odd, 1))));        // type 14, which it ignores
  std::string cut = exif(text + inside, 1);
  cut.resize(cut.size() - 2);  // in the offset after the entries
  CHECK_FALSE(is_plain(with(bare, cut)));
  // With a resolution in a JFIF segment, at any position, Pillow does not read the EXIF segment.
  const Bytes measured = patched(plain(), 0xE0, 7, 1), unmeasured = patched(plain(), 0xE0, 7, 0);
  for (const std::string& segment : {exif(text + outside, 1), cut}) {
    CHECK(is_plain(with(measured, segment)));
    CHECK_FALSE(is_plain(with(unmeasured, segment)));
  }
  CHECK(is_plain(with(unmeasured, sound)));
}
