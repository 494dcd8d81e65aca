// nvJPEG is loaded at run time; a missing or wrong library is an error of one sentence.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "gpu/decoders/nvjpeg_api.h"

using namespace headrace;

TEST_CASE("a library that is not there, or is another, is said") {
  CHECK_THROWS_AS(nvjpeg::load({}), std::runtime_error);
  CHECK_THROWS_WITH_AS(nvjpeg::load({"/nonexistent/libnvjpeg.so"}), doctest::Contains("/nonexistent/libnvjpeg.so"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(nvjpeg::load({"/nonexistent/a.so", "libc.so.6"}), "libc.so.6 has no function nvjpegCreateEx",
                       std::runtime_error);
  CHECK(std::string(nvjpeg::status_name(99)) == "unknown status");
}
