// A list that is durable without transactions: threads append nodes to it in turn, and a node is published when it is
// durable. Each thread persists and publishes what the thread before it has stored, so stores and their cleans are often of
// different cores.
//
//     published run [threads] [nodes] [no-fence | no-clean]
//     published check
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "durasim/markers.h"
#include "durasim/persist.h"

namespace {

constexpr std::uint64_t nodes_max = 200;
constexpr unsigned threads_max = 16;

struct alignas(64) Node {
    std::uint64_t value, complement;
};

struct Pool {
    alignas(64) std::uint64_t published;
    Node nodes[nodes_max + 1];
};

Pool *pool;
std::uint64_t wanted;
std::uint64_t stored;  // the last node that is stored
bool fences = true, cleans = true;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

std::uint64_t value_of(std::uint64_t node) { return node * 0x9e3779b97f4a7c15U; }

void persist(const void *place) {
    if (cleans) durasim_clean(place);
    if (fences) durasim_persist_fence();
}

void *append(void *) {
    for (bool done = false; !done;) {
        pthread_mutex_lock(&lock);
        if (stored > pool->published) {
            persist(&pool->nodes[stored]);
            pool->published = stored;
            persist(&pool->published);
        }
        done = stored == wanted;
        if (!done) {
            ++stored;
            pool->nodes[stored].value = value_of(stored);
            pool->nodes[stored].complement = ~value_of(stored);
        }
        pthread_mutex_unlock(&lock);
    }
    return nullptr;
}

int check() {
    if (pool->published > nodes_max) return std::puts("no such node"), 1;
    for (std::uint64_t node = 1; node <= pool->published; ++node) {
        if (pool->nodes[node].value != value_of(node) || pool->nodes[node].complement != ~value_of(node)) {
            std::printf("node %llu of %llu is not there\n", static_cast<unsigned long long>(node),
                        static_cast<unsigned long long>(pool->published));
            return 1;
        }
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    const int file = open("/pmem/published", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(Pool)) != 0) return 2;
    void *mapped = mmap(nullptr, sizeof(Pool), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return 2;
    pool = static_cast<Pool *>(mapped);
    if (argc < 2 || std::strcmp(argv[1], "run") != 0) return check();
    if (check() != 0) return 1;
    durasim_declare_data(pool, sizeof(Pool));
    const unsigned threads = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
    wanted = argc > 3 ? static_cast<std::uint64_t>(std::atoi(argv[3])) : 20;
    fences = argc <= 4 || std::strcmp(argv[4], "no-fence") != 0;
    cleans = argc <= 4 || std::strcmp(argv[4], "no-clean") != 0;
    if (threads > threads_max || wanted > nodes_max) return 2;
    stored = pool->published;
    pthread_t others[threads_max];
    for (unsigned n = 1; n < threads; ++n) pthread_create(&others[n], nullptr, append, nullptr);
    append(nullptr);
    for (unsigned n = 1; n < threads; ++n) pthread_join(others[n], nullptr);
    return check();
}
