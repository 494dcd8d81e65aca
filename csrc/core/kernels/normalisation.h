// Tables that hold what ToTensor and Normalize make of a byte, recognised by their entries.
#pragma once

#include <optional>

namespace headrace {

/// A table's entries are ((byte / 255) - mean) / deviation in float32, channel by channel, each step rounded.
///
/// A quotient is made as Markstein's theorem has it: a product with the rounded inverse, corrected by what a fused
/// multiply-add finds missing. That is nearly always the rounded quotient, and here always: it was tried on all bytes.
struct Normalisation {
  float mean[3], deviation[3], inverse[3];
};

inline constexpr float kByteInverse = 1.0F / 255.0F;

/// The one whose arithmetic gives all `entries`, float32 [3][256], to the bit; none where there is no such.
std::optional<Normalisation> find_normalisation(const void* entries);

}  // namespace headrace
