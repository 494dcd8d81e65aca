# The sources of libjpeg-turbo and libdeflate, which are built where the system has none: in a source distribution
# (third_party/), or downloaded. Their hashes are known, so any mirror serves.
#
#     cmake -D FOLDER=third_party -P cmake/source_archives.cmake    # `make sdist`
set(HEADRACE_JPEG_VERSION 3.1.3)
set(HEADRACE_libjpeg-turbo-${HEADRACE_JPEG_VERSION}_SHA256
  3a13a5ba767dc8264bc40b185e41368a80d5d5f945944d1dbaa4b2fb0099f4e5)
set(HEADRACE_libjpeg-turbo-${HEADRACE_JPEG_VERSION}_URLS
  https://github.com/libjpeg-turbo/libjpeg-turbo/archive/refs/tags/${HEADRACE_JPEG_VERSION}.tar.gz
  https://deb.debian.org/debian/pool/main/libj/libjpeg-turbo/libjpeg-turbo_${HEADRACE_JPEG_VERSION}.orig.tar.gz)
set(HEADRACE_DEFLATE_VERSION 1.23)
set(HEADRACE_libdeflate-${HEADRACE_DEFLATE_VERSION}_SHA256
  1ab18349b9fb0ce8a0ca4116bded725be7dcbfa709e19f6f983d99df1fb8b25f)
set(HEADRACE_libdeflate-${HEADRACE_DEFLATE_VERSION}_URLS
  https://github.com/ebiggers/libdeflate/archive/refs/tags/v${HEADRACE_DEFLATE_VERSION}.tar.gz
  https://deb.debian.org/debian/pool/main/libd/libdeflate/libdeflate_${HEADRACE_DEFLATE_VERSION}.orig.tar.gz)

# Sets `is` to whether a file is there and has this hash.
function(headrace_is_archive is path wanted)
  set(hash "")
  if(EXISTS ${path})
    file(SHA256 ${path} hash)
  endif()
  string(COMPARE EQUAL "${hash}" ${wanted} same)
  set(${is} ${same} PARENT_SCOPE)
endfunction()

# Sets `found` to the path of an archive, by its name without .tar.gz, in one of `folders`, or in the last of them, to
# which it is downloaded; without either, sets it to "" and `reasons` to what each mirror answered.
function(headrace_source_archive found reasons name folders)
  set(${found} "" PARENT_SCOPE)
  set(hash ${HEADRACE_${name}_SHA256})
  foreach(folder IN LISTS folders)
    headrace_is_archive(there ${folder}/${name}.tar.gz ${hash})
    if(there)
      set(${found} ${folder}/${name}.tar.gz PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(failed "")
  foreach(url IN LISTS HEADRACE_${name}_URLS)
    message(STATUS "Downloading ${url}")
    file(DOWNLOAD ${url} ${folder}/${name}.tar.gz INACTIVITY_TIMEOUT 30 STATUS status TLS_VERIFY ON)
    list(GET status 0 code)
    list(GET status 1 reason)
    headrace_is_archive(there ${folder}/${name}.tar.gz ${hash})
    if(there)
      set(${found} ${folder}/${name}.tar.gz PARENT_SCOPE)
      return()
    elseif(code EQUAL 0)
      set(reason "another file than ${hash}")
    endif()
    file(REMOVE ${folder}/${name}.tar.gz)
    list(APPEND failed "${url}: ${reason}")
  endforeach()
  list(JOIN failed "; " failed)
  set(${reasons} "${failed}" PARENT_SCOPE)
endfunction()

# Sets `source` to the folder of a source, by its name, unpacked below the build's folder. Ends the build if it is not
# there and cannot be downloaded: `what` has no headers on this system, and `packages` have them.
function(headrace_unpack_source source name what packages)
  headrace_source_archive(archive reasons ${name} "${CMAKE_SOURCE_DIR}/third_party;${CMAKE_BINARY_DIR}")
  if(NOT archive)
    message(FATAL_ERROR "headrace found no headers of ${what}, and could not download its source (${reasons}): install "
      "${packages}, then build again.")
  endif()
  set(folder ${CMAKE_BINARY_DIR}/sources/${name})
  if(NOT EXISTS ${folder}/CMakeLists.txt)
    file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${CMAKE_BINARY_DIR}/sources)
  endif()
  set(${source} ${folder} PARENT_SCOPE)
endfunction()

# Builds a static library with CMake, as a project of its own, and makes the imported target headrace_bundled_`name`.
# `file`: the library's; all else are its options.
function(headrace_build_static name source file)
  set(flags "-fvisibility=hidden -ffunction-sections -fdata-sections ${HEADRACE_PROTECT} ${HEADRACE_FORTIFY}")
  set(passed "")
  foreach(variable IN ITEMS CMAKE_TOOLCHAIN_FILE CMAKE_C_COMPILER CMAKE_OSX_ARCHITECTURES CMAKE_OSX_DEPLOYMENT_TARGET)
    if(DEFINED ${variable})
      list(APPEND passed "-D${variable}=${${variable}}")
    endif()
  endforeach()
  set(root ${CMAKE_BINARY_DIR}/bundled/${name})
  include(ExternalProject)
  ExternalProject_Add(${name}
    SOURCE_DIR ${source}
    BINARY_DIR ${root}/build
    INSTALL_DIR ${root}/install
    CMAKE_ARGS ${passed} -DCMAKE_INSTALL_PREFIX=<INSTALL_DIR> -DCMAKE_INSTALL_LIBDIR=lib
      -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_C_FLAGS=${flags} ${ARGN}
    BUILD_BYPRODUCTS <INSTALL_DIR>/lib/${file})
  file(MAKE_DIRECTORY ${root}/install/include)
  add_library(headrace_bundled_${name} STATIC IMPORTED GLOBAL)
  set_target_properties(headrace_bundled_${name} PROPERTIES
    IMPORTED_LOCATION ${root}/install/lib/${file}
    INTERFACE_INCLUDE_DIRECTORIES ${root}/install/include)
  add_dependencies(headrace_bundled_${name} ${name})
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  get_filename_component(folder "${FOLDER}" ABSOLUTE)
  foreach(name IN ITEMS libjpeg-turbo-${HEADRACE_JPEG_VERSION} libdeflate-${HEADRACE_DEFLATE_VERSION})
    headrace_source_archive(archive reasons ${name} "${folder}")
    if(NOT archive)
      message(FATAL_ERROR "${name} could not be downloaded (${reasons})")
    endif()
    message(STATUS "${archive}")
  endforeach()
endif()
