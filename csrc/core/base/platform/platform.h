// Whether Linux's own functions are used. HEADRACE_PORTABLE: not even on Linux, so that the other versions are tested.
#pragma once

#if defined(__linux__) && !defined(HEADRACE_PORTABLE)
#define HEADRACE_LINUX 1
#else
#define HEADRACE_LINUX 0
#endif
