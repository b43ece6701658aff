// parallel_sort NUMBERS THREADS: sorts blocks in std::jthread, merges them in pairs after a std::barrier, and sorts text
// with std::stable_sort. Futures, atomics, a condition variable and exceptions that cross threads.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <queue>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

int main(int argc, char** argv) {
    const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 0) : 100000;
    const std::size_t threads = argc > 2 ? std::strtoul(argv[2], nullptr, 0) : 4;
    std::mt19937_64 draw(11);
    std::vector<std::uint64_t> numbers(count);
    for (auto& number : numbers) number = draw();
    auto expected = numbers;
    std::sort(expected.begin(), expected.end());

    const auto edge = [&](std::size_t block) { return numbers.begin() + count * block / threads; };
    std::barrier rounds(static_cast<std::ptrdiff_t>(threads));
    std::atomic<int> merges{0};
    {
        std::vector<std::jthread> workers;
        for (std::size_t self = 0; self < threads; self++) {
            workers.emplace_back([&, self] {
                std::sort(edge(self), edge(self + 1));
                for (std::size_t width = 1; width < threads; width *= 2) {
                    rounds.arrive_and_wait();
                    if (self % (2 * width) != 0 || self + width >= threads) continue;
                    std::inplace_merge(edge(self), edge(self + width), edge(std::min(self + 2 * width, threads)));
                    merges++;
                }
            });
        }
    }
    std::printf("%s after %d merges\n", numbers == expected ? "sorted" : "NOT SORTED", merges.load());

    std::vector<std::string> lines;
    for (std::size_t i = 0; i < count / 20; i++) lines.push_back(std::to_string(numbers[i] % 1000) + " line");
    std::stable_sort(lines.begin(), lines.end());
    std::printf("%s ... %s\n", lines.front().c_str(), lines.back().c_str());

    std::mutex lock;
    std::condition_variable_any filled;
    std::queue<std::uint64_t> work;
    std::shared_mutex table_lock;
    std::unordered_map<std::uint64_t, int> table;
    {
        std::jthread consumer([&](std::stop_token stop) {
            std::unique_lock held(lock);
            while (filled.wait(held, stop, [&] { return !work.empty(); })) {
                std::unique_lock writing(table_lock);
                table[work.front() % 10]++;
                work.pop();
            }
        });
        for (std::uint64_t i = 0; i < 300; i++) {
            {
                std::lock_guard held(lock);
                work.push(i);
            }
            filled.notify_one();
        }
        const auto idle = [&] {
            std::lock_guard held(lock);
            return work.empty();
        };
        while (!idle()) std::this_thread::yield();
        consumer.request_stop();
    }
    std::shared_lock reading(table_lock);
    std::printf("%zu classes of %d\n", table.size(), table[3]);

    auto failing = std::async(std::launch::async, []() -> int { throw std::runtime_error("thrown in a thread"); });
    try {
        failing.get();
    } catch (const std::runtime_error& error) {
        std::printf("caught: %s\n", error.what());
    }
    static std::once_flag once;
    static thread_local int own = 0;
    int calls = 0;
    std::vector<std::future<int>> futures;
    for (int i = 0; i < 5; i++) {
        futures.push_back(std::async(std::launch::async, [&, i] {
            std::call_once(once, [&] { calls++; });
            own += i;
            return own;
        }));
    }
    int sum = 0;
    for (auto& future : futures) sum += future.get();
    std::printf("%d call, %d\n", calls, sum);
    return 42;
}
