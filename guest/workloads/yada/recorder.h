// Collects which objects a transaction sees and changes, and reports them to the history when it ends. Without a history,
// nothing is left of it.
#ifndef DURASIM_WORKLOADS_YADA_RECORDER_H
#define DURASIM_WORKLOADS_YADA_RECORDER_H

#include <cstdint>
#include <vector>

#include "workloads/yada/elements.h"

namespace yada {

// Objects are named by their addresses. One without a stamp is not there.
template <class Read>
std::uint64_t version_of(const std::uint64_t* words, std::uint64_t count, Read&& read) {
    if (read(words[0]) == 0) return 0;
    durasim::Version version;
    for (std::uint64_t i = 0; i < count; ++i) version.take(read(words[i]));
    return version.value();
}

struct Seen {
    std::uint64_t* words;
    std::uint64_t count;
    std::uint64_t found;
    bool is_changed, is_gone;
};

class Recorder {
public:
    // `seen` has enough room and is not made larger: a transaction that aborts must not be inside of malloc.
    Recorder(durasim::Tx& t, std::vector<Seen>& seen, std::uint64_t stamp) : t_(t), seen_(seen), stamp_(stamp) {}

    template <class Object>
    void see(Object& object) {
        if constexpr (durasim::has_history) find(object);
    }
    template <class Object>
    void change(Object& object) {
        if constexpr (durasim::has_history) find(object).is_changed = true;
    }
    // The block of an element becomes spare, or is taken into use.
    void set_gone(Element& element, bool is_gone) {
        if constexpr (durasim::has_history) {
            find(element).is_changed = true;
            find(element).is_gone = is_gone;
        }
    }

    void report() {
        if constexpr (durasim::has_history) {
            for (std::uint64_t i = 0; i < count_; ++i) {
                Seen& seen = seen_[i];
                if (seen.is_changed) t_.write(seen.words[0], seen.is_gone ? 0 : stamp_);
                const std::uint64_t left = seen.is_changed ? version(seen.words, seen.count) : seen.found;
                if (seen.found != 0 || left != 0) durasim::report_change(reinterpret_cast<std::uint64_t>(seen.words), seen.found, left);
            }
        }
    }

private:
    std::uint64_t version(const std::uint64_t* words, std::uint64_t count) {
        return version_of(words, count, [this](const std::uint64_t& place) { return t_.read(place); });
    }

    template <class Object>
    Seen& find(Object& object) {
        auto* words = reinterpret_cast<std::uint64_t*>(&object);
        for (std::uint64_t i = 0; i < count_; ++i) {
            if (seen_[i].words == words) return seen_[i];
        }
        if (count_ == seen_.size()) durasim::fail(durasim::exit_runtime, "yada: a transaction sees more than %zu objects", seen_.size());
        seen_[count_] = {words, Object::words, version(words, Object::words), false, false};
        return seen_[count_++];
    }

    durasim::Tx& t_;
    std::vector<Seen>& seen_;
    std::uint64_t stamp_;
    std::uint64_t count_ = 0;
};

}  // namespace yada

#endif
