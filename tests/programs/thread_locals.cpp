// thread_local objects, exceptions in threads, std::jthread with stop tokens, call_once, shared_mutex, async.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

static std::atomic<int> made, unmade;

struct Local {
    int value = ++made;
    std::string text = "local";
    ~Local() { unmade += value > 0; }
};

static thread_local Local local;
static thread_local int depth = 3;
static thread_local std::unordered_map<int, std::string> names;

static int work(int id) {
    depth += id;
    local.text += std::to_string(id);
    for (int i = 0; i < 100; i++) {
        names[i % (id + 2)] += 'x';
    }
    if (id % 3 == 2) {
        throw std::runtime_error("thread " + std::to_string(id));
    }
    return depth * 100 + static_cast<int>(names.size()) + static_cast<int>(local.text.size());
}

int main() {
    std::vector<int> results(9);
    std::vector<std::string> errors(9);
    {
        std::vector<std::jthread> threads;
        for (int id = 0; id < 9; id++) {
            threads.emplace_back([id, &results, &errors] {
                try {
                    results[id] = work(id);
                } catch (const std::exception& e) {
                    errors[id] = e.what();
                }
            });
        }
    }
    for (int id = 0; id < 9; id++) {
        std::printf("%d %s\n", results[id], errors[id].c_str());
    }
    std::printf("made %d unmade %d depth %d\n", made.load(), unmade.load(), depth);

    std::mutex mutex;
    std::condition_variable_any changed;
    int handled = 0;
    {
        std::jthread server([&](std::stop_token stop) {
            std::unique_lock lock(mutex);
            while (!changed.wait(lock, stop, [&] { return handled >= 100; }) && !stop.stop_requested()) {
            }
            handled += stop.stop_requested() ? 1000 : 0;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        std::lock_guard lock(mutex);
        handled = 7;
    }
    std::printf("stopped with %d\n", handled);

    std::once_flag once;
    std::shared_mutex shared;
    std::atomic<long> read_sum = 0;
    int called = 0, written = 0;
    {
        std::vector<std::jthread> threads;
        for (int id = 0; id < 6; id++) {
            threads.emplace_back([&, id] {
                std::call_once(once, [&] { called++; });
                for (int i = 0; i < 200; i++) {
                    if (i % 10 == id) {
                        std::unique_lock lock(shared);
                        written++;
                    } else {
                        std::shared_lock lock(shared);
                        read_sum += written >= 0;
                    }
                }
            });
        }
    }
    std::printf("called %d written %d read %ld\n", called, written, read_sum.load());

    std::vector<std::future<long>> parts;
    for (int part = 0; part < 4; part++) {
        parts.push_back(std::async(std::launch::async, [part] {
            std::vector<long> numbers(1000);
            std::iota(numbers.begin(), numbers.end(), part * 1000);
            return std::accumulate(numbers.begin(), numbers.end(), 0L);
        }));
    }
    long sum = 0;
    for (auto& part : parts) {
        sum += part.get();
    }
    std::promise<int> promise;
    auto failed = promise.get_future();
    std::thread([&promise] { promise.set_exception(std::make_exception_ptr(std::logic_error("broken"))); }).join();
    try {
        failed.get();
    } catch (const std::logic_error& e) {
        std::printf("sum %ld, %s\n", sum, e.what());
    }
}
