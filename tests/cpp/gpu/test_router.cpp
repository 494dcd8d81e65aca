// The router: what the JPEG engines take, and why they do not take the rest.
#include <doctest/doctest.h>

#include <string>

#include "gpu/decoders/router.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

std::string verdict(const JpegOptions& options) {
  const JpegHeader header = parse_jpeg_header(make_jpeg(options));
  REQUIRE(header.not_plain == nullptr);
  const char* reason = not_for_device(header);
  return reason == nullptr ? "" : reason;
}

}  // namespace

TEST_CASE("baseline files in the usual samplings go to the device") {
  CHECK(verdict({}) == "");
  CHECK(verdict({.components = 1}) == "");
  CHECK(verdict({.h = {2, 1, 1}}) == "");
  CHECK(verdict({.h = {2, 1, 1}, .v = {2, 1, 1}}) == "");
  CHECK(verdict({.v = {2, 1, 1}}) == "");
  CHECK(verdict({.h = {2, 1, 1}, .restart_rows = 1}) == "");
  CHECK(verdict({.optimal_tables = true}) == "");
}

TEST_CASE("everything odd goes to the CPU, and why") {
  CHECK(verdict({.progressive = true}) == "progressive");
  CHECK(verdict({.interleaved = false}) == "more than one scan");
  CHECK(verdict({.rgb = true}) == "red, green and blue components");
  CHECK(verdict({.h = {4, 1, 1}}) == "a sampling that the decoders lack");
  CHECK(verdict({.h = {4, 1, 1}, .v = {2, 1, 1}}) == "a sampling that the decoders lack");
  CHECK(verdict({.h = {2, 2, 1}, .v = {2, 1, 2}}) == "a sampling that the decoders lack");
  CHECK(verdict({.components = 1, .h = {2, 1, 1}, .v = {2, 1, 1}}) == "gray with sampling factors");
  CHECK(verdict({.width = 15, .height = 40}) == "smaller than the decoders take");
}
