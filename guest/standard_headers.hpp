// Headers of the C++ library that many programs include. They are parsed once and kept in this form; what a program
// becomes does not depend on it (see python/durasim/programs/toolchain.py).
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>
