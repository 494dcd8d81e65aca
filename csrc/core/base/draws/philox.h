// The uniform random numbers of samples, by Philox4x64-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). Those of a sample equal numpy's
// Generator(Philox(counter=[0, index, occurrence, 0], key=[seed, epoch])).random(k).
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

/// Writes uniforms [n][k], multiples of 2^-53 in [0, 1), of the n samples with these indices and occurrences (how often
/// the epoch's order named the index before).
void uniforms_of_samples(uint64_t seed, uint64_t epoch, std::span<const int64_t> indices,
                         std::span<const int64_t> occurrences, std::span<double> uniforms);

}  // namespace headrace
