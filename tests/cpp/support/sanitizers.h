// Which sanitizer the tests are built with.
#pragma once

namespace headrace::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

/// The step through the cases of a loop on one thread: ThreadSanitizer finds nothing there, and is twenty times slower.
inline constexpr int kCaseStep = kThreadSanitizer ? 16 : 1;

}  // namespace headrace::test
