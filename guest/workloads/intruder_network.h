// The pool of intruder, and the versions of it that its transactions report.
#ifndef DURASIM_WORKLOADS_INTRUDER_NETWORK_H
#define DURASIM_WORKLOADS_INTRUDER_NETWORK_H

#include <cstdint>

#include "durasim/history.h"
#include "durasim/layout.h"
#include "workloads/intruder_traffic.h"

namespace durasim::intruder {

// A fragment as it was sent; it never changes.
struct alignas(64) Packet {
    std::uint64_t flow;  // of the first pass through the queue
    std::uint64_t fragment;
    std::uint64_t fragments;  // of the flow
    std::uint64_t text;
};
static_assert(sizeof(Packet) == line_bytes);

// A captured fragment in the list of its flow.
struct Node {
    Node* next;  // with a higher number of the fragment
    std::uint64_t fragment;
    const Packet* packet;
};

// The entry of a flow in the tree.
struct Session {
    Node* first;
    std::uint64_t count;
};

// A whole flow; its text follows, a word for each fragment.
struct Block {
    std::uint64_t flow;
    std::uint64_t words;

    std::uint64_t* text() { return reinterpret_cast<std::uint64_t*>(this + 1); }
    const std::uint64_t* text() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
};

// Data that threads change lies on lines of its own.
struct alignas(64) Captured {
    std::uint64_t count;  // of fragments, in all passes
};
struct alignas(64) Whole {
    std::uint64_t pushed, popped;
};
struct alignas(64) Sessions {
    std::uint64_t top;
};

// The work and the holdings of a thread. Its operations are capture, reassembly and detection in turn.
struct alignas(64) Line {
    std::uint64_t finished;
    std::uint64_t packet;  // number of the captured fragment, from 1; 0: none
    Block* block;          // the flow to be searched, null: none
    std::uint64_t searched;
    std::uint64_t attacks;  // in these
};

struct alignas(64) Network {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t flows;
    std::uint64_t ready;  // flows that populating has made
    std::uint64_t threads;
    std::uint64_t fragments_max;
    std::uint64_t attack_percent;
    std::uint64_t packets;
    Packet* packet;  // flow after flow
    Packet** queue;  // in the order in which they come
    Captured* captured;
    Whole* whole;
    Block** ring;  // of whole flows, a place for each thread
    Sessions* sessions;
    Line* line;  // of each thread
};

inline std::uint64_t block_size(std::uint64_t fragments) { return sizeof(Block) + fragments * text_bytes; }

// Objects are the fragments that were sent, the places of their queue, flows with their lists, flows that are whole, and the two queues;
constexpr std::uint64_t packet_object(std::uint64_t number) { return std::uint64_t{1} << 61 | number; }
constexpr std::uint64_t place_object(std::uint64_t place) { return std::uint64_t{3} << 61 | place; }
constexpr std::uint64_t block_object(std::uint64_t flow) { return std::uint64_t{1} << 62 | flow; }
inline constexpr std::uint64_t captured_object = std::uint64_t{1} << 63;
inline constexpr std::uint64_t whole_object = captured_object + 1;

template <class Read>
std::uint64_t version_of(const Packet& packet, Read&& read) {
    Version version;
    const std::uint64_t fragments = read(packet.fragments);
    for (const std::uint64_t word : {read(packet.flow), read(packet.fragment), fragments, read(packet.text)}) version.take(word);
    return fragments == 0 ? 0 : version.value();
}

template <class Read>
std::uint64_t version_of(const Line& line, Read&& read) {
    Version version;
    for (const std::uint64_t* word : {&line.finished, &line.packet, &line.searched, &line.attacks}) version.take(read(*word));
    version.take(reinterpret_cast<std::uint64_t>(read(line.block)));
    return read(line.finished) == 0 ? 0 : version.value();
}

template <class Read>
std::uint64_t version_of(const Block* block, std::uint64_t words, Read&& read) {
    Version version;
    version.take(read(block->words));
    for (std::uint64_t w = 0; w < words; ++w) version.take(read(block->text()[w]));
    return version.value();
}

// The caller has made sure that there are no more entries than places.
template <class Read>
std::uint64_t version_of(const Whole& whole, Block* const* ring, std::uint64_t places, Read&& read) {
    Version version;
    const std::uint64_t pushed = read(whole.pushed), popped = read(whole.popped);
    version.take(pushed);
    version.take(popped);
    for (std::uint64_t i = popped; i < pushed; ++i) version.take(reinterpret_cast<std::uint64_t>(read(ring[i % places])));
    return pushed == 0 ? 0 : version.value();
}

}  // namespace durasim::intruder

#endif
