// Makes progressive JPEGs of given coefficients, with scans in any order that the standard allows.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace headrace::test {

struct ScanScript {
  std::vector<int> components;
  int first = 0, last = 0, high = 0, low = 0;
};

/// A random order of scans that codes all bits of all coefficients.
std::vector<ScanScript> random_script(std::minstd_rand& random, int components);

struct ProgressiveOptions {
  int width = 37, height = 29;
  std::vector<int> h{1, 1, 1}, v{1, 1, 1};  // of each component
  int restart_interval = 0;                 // MCUs
  int density = 20;                         // of 100 coefficients, how many are not zero
  int most = 100;                           // the greatest coefficient
};

/// Random coefficients, coded with this script and tables that are optimal for it.
std::vector<uint8_t> make_progressive(std::minstd_rand& random, const ProgressiveOptions& options,
                                      const std::vector<ScanScript>& script);

}  // namespace headrace::test
