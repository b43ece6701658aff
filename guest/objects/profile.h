// Places in a program that make objects, and what has become of these: AutoPersist lets objects be born in persistent memory
// where they would move there anyway (PLDI 2019, section 6; P-INSPECT, MICRO 2020, counts on it).
#ifndef DURASIM_OBJECTS_PROFILE_H
#define DURASIM_OBJECTS_PROFILE_H

#include <array>
#include <cstdint>

#include "durasim/error.h"
#include "objects/header.h"

namespace durasim::objects {

// The settings of a runtime, from the arguments of a workload.
struct ObjectOptions {
    std::uint64_t volatile_heap_bytes = 0;
    std::uint64_t sweep_forwarders = 0;  // the number of forwarding objects at which the pointer update thread sweeps; 0: never
    bool profile = true;                 // objects of sites that make durable ones are born in persistent memory
    bool placed = false;                 // objects are born where the user of ideal-r says
};

// The memory in which the user of ideal-r says that objects belong.
enum class Placement : std::uint8_t { ordinary, durable };

class Site {
public:
    explicit Site(Placement placement) : placement_(placement) {
        if (count_ == sites_.size()) fail(exit_runtime, "durasim: a program makes objects in more than %u places", static_cast<unsigned>(sites_.size()));
        number_ = static_cast<std::uint8_t>(count_);
        sites_[count_++] = this;
    }
    Site(const Site&) = delete;
    Site& operator=(const Site&) = delete;

    static Site& of(std::uint64_t number) { return *sites_[number]; }

    std::uint64_t number() const { return number_; }
    bool is_placed_durably() const { return placement_ == Placement::durable; }

    // At least half of what it has made has moved, of enough to say so.
    bool is_durable() const { return get(&durable_); }

    void count_allocation() { put(&made_, get(&made_) + 1); }
    void count_move() {
        const std::uint64_t moved = get(&moved_) + 1;
        put(&moved_, moved);
        if (!is_durable() && moved >= moves_enough && 2 * moved >= get(&made_)) put(&durable_, true);
    }

private:
    // An assumption: AutoPersist's own number is not published. [D:allocation-profile]
    static constexpr std::uint64_t moves_enough = 16;

    // A number has to fit into a header, where the mover's stands later.
    static inline std::array<Site*, 256> sites_{};
    static inline std::uint64_t count_ = 0;

    Placement placement_;
    std::uint8_t number_;
    bool durable_ = false;
    // Threads may lose counts of each other, which only delays the answer.
    std::uint64_t made_ = 0, moved_ = 0;
};

}  // namespace durasim::objects

#endif
