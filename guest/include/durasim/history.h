// The report of a program on its operations, so that a crash campaign can judge by them what it recovers.
//
// A transaction reports, inside its body, each object that it read or changed: which object, the version it found, the
// version it left. After a crash the program dumps the recovered pool as objects with their versions. The campaign knows
// in which order transactions began, committed and were acknowledged, and decides whether some set of them explains the
// dump (crates/crash/src/history). It needs no model of the workload.
//
// Objects and versions are chosen by the workload. All are numbers of 64 bits:
// - An object is a thing of the data structure as its users see it: a key, a place of an array, a queue's end. Not a node:
//   a split of a node does not change the meaning of its keys.
// - A version stands for the object's whole content. 0 means that the object is not there; the dump may leave it out.
//   Otherwise a version should not come again in the history of its object: take a counter that the object has, a value
//   that only one operation writes, or a hash over the content with one of these in it (Version).
// - Everything that the transaction's result depends on is reported, also what it only read (report_read): the reader of a
//   version comes after its writer.
// - What an aborted attempt has reported is forgotten, so a body may run again. Reports outside of a transaction, and
//   after its commit, are an error that the campaign shows.
// - Versions are taken from the pool, not from what the program believes: `t.read(place)`.
//
// Reports are markers. Programs have them only if built with -DDURASIM_HISTORY, as campaigns do; in other builds
// `has_history` is false, and under `if constexpr (durasim::has_history)` nothing is left of them.
#ifndef DURASIM_HISTORY_H
#define DURASIM_HISTORY_H

#include <cstdint>
#include <cstdio>
#include <vector>

#include "durasim/markers.h"
#include "durasim/random.h"

namespace durasim {

#if defined(DURASIM_HISTORY)
inline constexpr bool has_history = true;
#else
inline constexpr bool has_history = false;
#endif

// Objects that several workloads have. The highest 2^16 numbers are theirs; the others are free.
inline constexpr std::uint64_t root_object = ~std::uint64_t{0};           // version: the kind of the root, once it is there
inline constexpr std::uint64_t populated_object = ~std::uint64_t{0} - 1;  // version: how many items populating has made
inline constexpr std::uint64_t damage_object = ~std::uint64_t{0} - 2;     // in dumps alone: see Dump::note_damage
// Version: how many operations this thread has finished.
constexpr std::uint64_t progress_object(std::uint64_t thread) { return ~std::uint64_t{0xffff} + thread; }

// The open transaction found `found` and leaves `left`.
inline void report_change(std::uint64_t object, std::uint64_t found, std::uint64_t left) {
    if constexpr (has_history) {
        DURASIM_MARKER_(DURASIM_MARKER_OP_OBJECT, object);
        DURASIM_MARKER_(DURASIM_MARKER_OP_OLD, found);
        DURASIM_MARKER_(DURASIM_MARKER_OP_NEW, left);
    } else {
        (void)object, (void)found, (void)left;
    }
}

// The open transaction read this version.
inline void report_read(std::uint64_t object, std::uint64_t found) { report_change(object, found, found); }

// The version of a content of several words: a hash, never 0.
class Version {
public:
    constexpr void take(std::uint64_t word) { sum_ = mix(sum_ ^ word) + 0x9E3779B97F4A7C15u; }
    constexpr std::uint64_t value() const { return sum_ == 0 ? 1 : sum_; }

private:
    std::uint64_t sum_ = 0;
};

inline std::uint64_t version_of(const std::uint64_t* words, std::uint64_t count) {
    Version version;
    for (std::uint64_t i = 0; i < count; ++i) version.take(words[i]);
    return version.value();
}

// Objects with their versions, for the campaign to read.
class Dump {
public:
    void add(std::uint64_t object, std::uint64_t version) {
        pairs_.push_back(object);
        pairs_.push_back(version);
    }

    // A part of the pool cannot be reached, because what leads there makes no sense: no crash may leave that.
    void note_damage() {
        if (!damaged_) add(damage_object, 1);
        damaged_ = true;
    }

    // Writes a magic line, the number of pairs, the pairs, as little-endian words, and an end of line.
    void write(std::FILE* to) const {
        const std::uint64_t count = pairs_.size() / 2;
        std::fputs("durasim-dump/1\n", to);
        std::fwrite(&count, sizeof count, 1, to);
        std::fwrite(pairs_.data(), sizeof(std::uint64_t), pairs_.size(), to);
        std::fputc('\n', to);
    }

private:
    std::vector<std::uint64_t> pairs_;
    bool damaged_ = false;
};

}  // namespace durasim

#endif
