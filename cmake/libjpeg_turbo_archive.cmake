# The source of libjpeg-turbo that is built where the system has none: in a source distribution (third_party/), or
# downloaded. Its hash is known, so any mirror serves.
#
#     cmake -D FOLDER=third_party -P cmake/libjpeg_turbo_archive.cmake    # `make sdist`
set(HEADRACE_JPEG_VERSION 3.1.3)
set(HEADRACE_JPEG_SHA256 3a13a5ba767dc8264bc40b185e41368a80d5d5f945944d1dbaa4b2fb0099f4e5)
set(HEADRACE_JPEG_URLS
  https://github.com/libjpeg-turbo/libjpeg-turbo/archive/refs/tags/${HEADRACE_JPEG_VERSION}.tar.gz
  https://deb.debian.org/debian/pool/main/libj/libjpeg-turbo/libjpeg-turbo_${HEADRACE_JPEG_VERSION}.orig.tar.gz)

# Sets `is` to whether a file is there and is the archive.
function(headrace_is_jpeg_archive is path)
  set(hash "")
  if(EXISTS ${path})
    file(SHA256 ${path} hash)
  endif()
  string(COMPARE EQUAL "${hash}" ${HEADRACE_JPEG_SHA256} same)
  set(${is} ${same} PARENT_SCOPE)
endfunction()

# Sets `found` to the archive's path in one of `folders`, or in the last of them, to which it is downloaded; without
# either, sets it to "" and `reasons` to what each mirror answered.
function(headrace_jpeg_archive found reasons folders)
  set(${found} "" PARENT_SCOPE)
  set(name libjpeg-turbo-${HEADRACE_JPEG_VERSION}.tar.gz)
  foreach(folder IN LISTS folders)
    headrace_is_jpeg_archive(there ${folder}/${name})
    if(there)
      set(${found} ${folder}/${name} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(failed "")
  foreach(url IN LISTS HEADRACE_JPEG_URLS)
    message(STATUS "Downloading ${url}")
    file(DOWNLOAD ${url} ${folder}/${name} INACTIVITY_TIMEOUT 30 STATUS status TLS_VERIFY ON)
    list(GET status 0 code)
    list(GET status 1 reason)
    headrace_is_jpeg_archive(there ${folder}/${name})
    if(there)
      set(${found} ${folder}/${name} PARENT_SCOPE)
      return()
    elseif(code EQUAL 0)
      set(reason "another file than ${HEADRACE_JPEG_SHA256}")
    endif()
    file(REMOVE ${folder}/${name})
    list(APPEND failed "${url}: ${reason}")
  endforeach()
  list(JOIN failed "; " failed)
  set(${reasons} "${failed}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  get_filename_component(folder "${FOLDER}" ABSOLUTE)
  headrace_jpeg_archive(archive reasons "${folder}")
  if(NOT archive)
    message(FATAL_ERROR "libjpeg-turbo ${HEADRACE_JPEG_VERSION} could not be downloaded (${reasons})")
  endif()
  message(STATUS "${archive}")
endif()
