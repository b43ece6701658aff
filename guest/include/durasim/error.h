// The end of a guest program that gives up: one sentence on standard error and an exit code.
#ifndef DURASIM_ERROR_H
#define DURASIM_ERROR_H

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace durasim {

inline constexpr int exit_ok = 0;
inline constexpr int exit_violation = 1;  // a check found the pool inconsistent
inline constexpr int exit_usage = 2;      // an argument or a pool that this program cannot work with
inline constexpr int exit_runtime = 70;   // the transaction runtime cannot continue (nested transaction, full log or pool)

// Prints one line, made as by printf, and ends the program with `code`.
[[noreturn, gnu::format(printf, 2, 3), gnu::cold, gnu::noinline]] inline void fail(int code, const char* format, ...) {
    std::fflush(stdout);
    va_list values;
    va_start(values, format);
    std::vfprintf(stderr, format, values);
    va_end(values);
    std::fputc('\n', stderr);
    std::exit(code);
}

}  // namespace durasim

#endif
