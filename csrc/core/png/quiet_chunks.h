// Which chunks of a PNG libpng reads without a message on the standard error stream: programs see such messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

struct PngHeader;

/// Looks at the chunks of one file, in order. libpng warns of values that contradict each other, and of chunks that are
/// too long, out of place or there twice. Only what the common encoders write is known here to be quiet.
class QuietChunks {
 public:
  /// Whether libpng has nothing to say about a chunk that is not image data, if it had nothing to say before.
  ///
  /// `header`: what the chunks before it say, among them the kind of image. `before`: before the image data.
  bool take(std::string_view type, std::span<const uint8_t> data, const PngHeader& header, bool before);

 private:
  bool is_quiet(std::string_view type, std::span<const uint8_t> data, const PngHeader& header) const;

  std::vector<std::string> seen_;
  int texts_ = 0;
};

}  // namespace headrace
