# Sets HEADRACE_DEFLATE to the target of the system's libdeflate, or of one that is built here and linked statically.
set(HEADRACE_LIBDEFLATE AUTO CACHE STRING
  "libdeflate: SYSTEM, BUNDLED (built here), or AUTO (the system's, where its headers are installed)")
set(HEADRACE_DEFLATE_PACKAGES "libdeflate-dev (Debian, Ubuntu), libdeflate-devel (Fedora), or libdeflate (conda-forge, \
Homebrew)")

if(NOT HEADRACE_LIBDEFLATE STREQUAL "BUNDLED")
  find_path(HEADRACE_DEFLATE_HEADERS libdeflate.h)
  find_library(HEADRACE_DEFLATE_LIBRARY deflate)
  if(HEADRACE_DEFLATE_HEADERS AND HEADRACE_DEFLATE_LIBRARY)
    set(HEADRACE_DEFLATE headrace_system_libdeflate)
    add_library(${HEADRACE_DEFLATE} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${HEADRACE_DEFLATE} PROPERTIES
      IMPORTED_LOCATION ${HEADRACE_DEFLATE_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${HEADRACE_DEFLATE_HEADERS})
    return()
  endif()
  if(NOT HEADRACE_LIBDEFLATE STREQUAL "AUTO")
    message(FATAL_ERROR "headrace needs the headers of libdeflate: install ${HEADRACE_DEFLATE_PACKAGES}, then build "
      "again.")
  endif()
endif()

headrace_unpack_source(source libdeflate-${HEADRACE_DEFLATE_VERSION} libdeflate "${HEADRACE_DEFLATE_PACKAGES}")
headrace_build_static(libdeflate ${source} libdeflate.a -DCMAKE_BUILD_TYPE=Release -DLIBDEFLATE_BUILD_SHARED_LIB=OFF
  -DLIBDEFLATE_COMPRESSION_SUPPORT=OFF -DLIBDEFLATE_GZIP_SUPPORT=OFF -DLIBDEFLATE_BUILD_GZIP=OFF)
set(HEADRACE_DEFLATE headrace_bundled_libdeflate)
if(SKBUILD)  # a wheel that contains it brings its licence
  install(FILES ${source}/COPYING DESTINATION ${SKBUILD_METADATA_DIR}/licenses/libdeflate COMPONENT python)
endif()
