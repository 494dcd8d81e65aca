// Takes the segments before the first scan one by one, and leaves all unusual ones to Pillow.
#include "core/jpeg/sequential/opening_markers.h"

#include <algorithm>
#include <string_view>

namespace headrace {
namespace {

constexpr int kSof0 = 0xC0, kSof2 = 0xC2, kDht = 0xC4, kSoi = 0xD8, kSos = 0xDA, kDqt = 0xDB, kDri = 0xDD;
constexpr int kApp0 = 0xE0, kApp15 = 0xEF, kCom = 0xFE;
constexpr size_t kJfifBytes = 12, kAdobeBytes = 12, kPiecesOfProfile = 13, kUnit = 7;

using Bytes = std::span<const uint8_t>;

bool begins(Bytes body, std::string_view text) {
  return body.size() >= text.size() && std::equal(text.begin(), text.end(), body.begin());
}

/// Nothing: Pillow looks into it further than this file's users know.
std::optional<OpeningKind> kind_of_application(int number, Bytes body) {
  using namespace std::string_view_literals;
  const auto where = [](bool usual, OpeningKind kind) {
    return usual ? std::optional(kind) : std::optional<OpeningKind>();
  };
  if (number == 0 && begins(body, "JFIF"sv))
    return where(body.size() >= kJfifBytes && body[kUnit] <= 1, OpeningKind::kJfif);
  if (number == 2 && begins(body, "ICC_PROFILE\0"sv))
    return where(body.size() >= kOpeningProfile && body[kPiecesOfProfile] == 1, OpeningKind::kProfile);
  if (number == 14 && begins(body, "Adobe"sv)) return where(body.size() >= kAdobeBytes, OpeningKind::kAdobe);
  const bool exif = begins(body, "Exif\0\0"sv) || begins(body, "http://ns.adobe.com/xap/1.0/\0"sv);
  const bool pictures = begins(body, "FPXR\0"sv) || begins(body, "MPF\0"sv);
  const bool photoshop = begins(body, "Photoshop 3.0\0"sv);
  const bool looked_into = (number == 1 && exif) || (number == 2 && pictures) || (number == 13 && photoshop);
  return where(!looked_into, OpeningKind::kApplication);
}

bool is_plain_frame(Bytes body) {
  if (body.size() < 6 || body[0] != 8) return false;
  const size_t components = body[5];
  return (components == 1 || components == 3) && body.size() == 6 + 3 * components;
}

bool are_plain_tables(Bytes body) {
  for (; !body.empty(); body = body.subspan(kOpeningTable))
    if (body.size() < kOpeningTable || body[0] >> 4 != 0) return false;
  return true;
}

}  // namespace

std::optional<OpeningMarkers> read_opening_markers(Bytes head) {
  if (head.size() < 2 || head[0] != 0xFF || head[1] != kSoi) return {};
  OpeningMarkers found;
  bool framed = false, profiled = false;
  for (size_t at = 2; head.size() - at >= 4;) {
    const int marker = head[at + 1];
    const size_t length = static_cast<size_t>(head[at + 2] << 8 | head[at + 3]);
    if (head[at] != 0xFF || length < 2 || length > head.size() - at - 2) return {};
    const Bytes body = head.subspan(at + 4, length - 2);
    at += 2 + length;
    if (marker == kSos) {
      found.end = at;
      return framed ? std::optional(std::move(found)) : std::nullopt;
    }
    if (marker == kDht || marker == kDri) continue;
    OpeningSegment segment{.marker = marker, .body = body};
    if (marker == kDqt) {
      if (!are_plain_tables(body)) return {};
      segment.kind = OpeningKind::kTables;
    } else if (marker >= kSof0 && marker <= kSof2) {
      if (framed || !is_plain_frame(body)) return {};
      framed = true;
      segment.kind = OpeningKind::kFrame;
    } else if (marker >= kApp0 && marker <= kApp15) {
      const std::optional<OpeningKind> kind = kind_of_application(marker - kApp0, body);
      if (!kind) return {};
      segment.kind = *kind;
      // Pillow reads a profile when the frame comes: one after it waits for a next frame.
      const bool profile = *kind == OpeningKind::kProfile;
      if (profile && (profiled || framed)) return {};
      profiled = profiled || profile;
    } else if (marker == kCom) {
      segment.kind = OpeningKind::kComment;
    } else {
      return {};
    }
    found.segments.push_back(segment);
  }
  return {};
}

}  // namespace headrace
