# Sets HEADRACE_JPEG to the target of the system's libjpeg-turbo, or of one that is built here and linked statically.
set(HEADRACE_LIBJPEG_TURBO AUTO CACHE STRING
  "libjpeg-turbo: SYSTEM, BUNDLED (built here), or AUTO (the system's, where it is 2.1 or newer)")
set(HEADRACE_JPEG_PACKAGES "libjpeg62-turbo-dev (Debian) or libjpeg-turbo8-dev (Ubuntu), libjpeg-turbo-devel (Fedora), \
libjpeg-turbo (conda-forge), or jpeg-turbo (Homebrew)")

if(NOT HEADRACE_LIBJPEG_TURBO STREQUAL "BUNDLED")
  include(CheckCXXSourceCompiles)
  find_package(JPEG QUIET)
  if(JPEG_FOUND)
    set(CMAKE_REQUIRED_INCLUDES ${JPEG_INCLUDE_DIRS})
    # 2.1: the first with libjpeg-turbo's own fancy upsampling for 4:4:0, which Pillow's wheels have.
    check_cxx_source_compiles("
      #include <cstddef>
      #include <cstdio>
      #include <jpeglib.h>
      #if !defined(LIBJPEG_TURBO_VERSION_NUMBER) || LIBJPEG_TURBO_VERSION_NUMBER < 2001000
      #error not libjpeg-turbo 2.1 or newer
      #endif
      int main() { return static_cast<int>(JCS_EXT_RGBX) == 0; }" HEADRACE_HAVE_LIBJPEG_TURBO)
    unset(CMAKE_REQUIRED_INCLUDES)
  endif()
  if(HEADRACE_HAVE_LIBJPEG_TURBO)
    set(HEADRACE_JPEG JPEG::JPEG)
    return()
  endif()
  if(NOT HEADRACE_LIBJPEG_TURBO STREQUAL "AUTO")
    message(FATAL_ERROR "headrace needs the headers of libjpeg-turbo 2.1 or newer: install ${HEADRACE_JPEG_PACKAGES}, "
      "then build again.")
  endif()
endif()

headrace_unpack_source(source libjpeg-turbo-${HEADRACE_JPEG_VERSION} "libjpeg-turbo 2.1 or newer"
  "${HEADRACE_JPEG_PACKAGES}")
# Pillow's pixels are those of its vector code, which for x86 needs an assembler. Without one, the files that the core
# does not decode by loops of its own are left to Pillow.
set(simd -DREQUIRE_SIMD=ON)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  find_program(HEADRACE_NASM NAMES nasm yasm)
  if(NOT HEADRACE_NASM)
    message(STATUS "libjpeg-turbo is built without its vector code: no nasm was found")
    set(simd -DWITH_SIMD=OFF)
    set(HEADRACE_JPEG_IN_C ON)
  endif()
endif()
headrace_build_static(libjpeg_turbo ${source} libjpeg.a -DCMAKE_BUILD_TYPE=MinSizeRel -DENABLE_SHARED=OFF
  -DWITH_TURBOJPEG=OFF -DWITH_TOOLS=OFF -DWITH_TESTS=OFF -DWITH_ARITH_ENC=OFF -DWITH_ARITH_DEC=OFF ${simd})
set(HEADRACE_JPEG headrace_bundled_libjpeg_turbo)
if(SKBUILD)  # a wheel that contains it brings its licences
  install(FILES ${source}/LICENSE.md ${source}/README.ijg
    DESTINATION ${SKBUILD_METADATA_DIR}/licenses/libjpeg-turbo COMPONENT python)
endif()
