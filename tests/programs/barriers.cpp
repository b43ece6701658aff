// Barriers, latches and semaphores: phases never mix, whatever the order of the threads.
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <latch>
#include <semaphore>
#include <thread>
#include <vector>

constexpr int threads = 5, phases = 40;

int main() {
    int completed = 0;
    bool mixed = false;
    std::vector<int> phase_of(threads);
    std::barrier barrier(threads, [&]() noexcept {
        completed++;
        for (int phase : phase_of) {
            mixed |= phase != completed;
        }
    });
    std::latch done(threads);
    std::counting_semaphore<2> permits(2);
    std::atomic<int> inside = 0, most = 0;
    pthread_barrier_t old_barrier;
    pthread_barrier_init(&old_barrier, nullptr, threads);
    std::atomic<int> serial = 0;
    std::vector<std::jthread> team;
    for (int id = 0; id < threads; id++) {
        team.emplace_back([&, id] {
            for (int phase = 1; phase <= phases; phase++) {
                phase_of[id] = phase;
                barrier.arrive_and_wait();
                serial += pthread_barrier_wait(&old_barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
            }
            for (int i = 0; i < 20; i++) {
                permits.acquire();
                int now = ++inside;
                for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                }
                std::this_thread::yield();
                --inside;
                permits.release();
            }
            done.count_down();
        });
    }
    done.wait();
    team.clear();
    std::printf("completed %d mixed %d serial %d within limit %d\n", completed, mixed, serial.load(), most.load() <= 2);
}
