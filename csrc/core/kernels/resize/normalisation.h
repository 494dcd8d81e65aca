// Recognises tables of the results of ToTensor and Normalize by their entries.
#pragma once

#include <optional>

namespace headrace {

/// A table's entries are ((byte / 255) - mean) / deviation in float32, channel by channel, each step rounded.
///
/// Quotients are computed by Markstein's method: a product with the rounded inverse, corrected by the remainder that a
/// fused multiply-add gives. The result is nearly always the rounded quotient, and here always: all bytes are checked.
struct Normalisation {
  float mean[3], deviation[3], inverse[3];
};

inline constexpr float kByteInverse = 1.0F / 255.0F;

/// The normalisation that gives all `entries`, float32 [3][256], to the bit; nullopt: there is none.
std::optional<Normalisation> find_normalisation(const void* entries);

}  // namespace headrace
