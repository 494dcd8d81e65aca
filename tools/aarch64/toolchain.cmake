# Cross-compiles for Linux on 64-bit Arm with Debian's compiler; tests run under qemu-user. See sysroot.sh.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

# libjpeg-turbo and doctest for that processor; nothing of this machine's.
set(root ${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64-root/usr)
list(APPEND CMAKE_PREFIX_PATH ${root})
set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)
set(JPEG_INCLUDE_DIR ${root}/include CACHE PATH "")
set(JPEG_LIBRARY ${root}/lib/aarch64-linux-gnu/libjpeg.a CACHE FILEPATH "")
