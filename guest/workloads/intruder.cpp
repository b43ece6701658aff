// durasim-workload: intruder — network intrusion detection: fragments of flows are captured, reassembled and searched for attacks
//
// The program intruder of STAMP (Cao Minh, Chung, Kozyrakis and Olukotun, IISWC 2008, section III and Table IV), which follows the
// signature-based design 5 of Haagdorens, Vermeiren and Goossens (WISA 2004). STAMP's input -a10 -l4 -n2038 -s1 is
// --attack-percent 10 --fragments-max 4 --populate 2038 --seed 1. --populate is the number of flows; an operation is one of three
// transactions, which a thread makes in turn for each fragment:
// - capture: takes the next fragment from the queue that all threads share.
// - reassembly: puts it into its flow's sorted list of fragments, which a red-black tree leads to. The last fragment of a flow makes a
//   block with the whole text, removes the list and puts the block into the queue of whole flows, also shared.
// - detection: takes a block from that queue, if there is one. Its text is searched for each of 64 signatures outside of the transaction.
//
// Deviations. What a thread holds between its transactions, a fragment or a whole flow, it notes on its line of the pool, so a power
// failure loses nothing; STAMP has it in local variables. The number of attacks is noted, and the block given back, in the thread's next
// reassembly. When all fragments are captured, the queue begins again with the same texts as those of new flows, so there is work for any
// number of operations. A flow has 1 to --fragments-max fragments, of 8 bytes each; STAMP cuts a text anywhere. The head of a list
// is in the node of the tree, and a fragment of a flow that has no other goes to the queue of whole flows at once, as in STAMP.
// The queue of whole flows is a ring that never grows: each thread puts in at most one between two looks.
//
// Each thread allocates from an arena of its own; a block goes back to the arena it is from. Which thread captures what depends
// on the order of the transactions; what is captured, reassembled and found by all of them together does not, and a check compares it.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "structures/blocks.h"
#include "structures/red_black_tree.h"
#include "workloads/harness.h"
#include "workloads/intruder_network.h"
#include "workloads/intruder_traffic.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Tx;
using namespace durasim::intruder;

constexpr std::uint64_t kind_of_root = 0x7265647572746e69;  // "intruder"

class Intruder {
public:
    static std::uint64_t arenas(const Arguments& arguments) { return 1 + arguments.threads; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const Traffic traffic = traffic_of(arguments);
        // Arena 0 has what stays. In the others lie lists and blocks; a thread may have allocated all that there can be at once.
        const std::uint64_t fixed = durasim::block_bytes(sizeof(Network)) + durasim::block_bytes(traffic.packets() * sizeof(Packet)) +
                                    durasim::block_bytes(traffic.packets() * sizeof(Packet*)) +
                                    durasim::block_bytes(arguments.threads * sizeof(Block*)) +
                                    durasim::block_bytes(arguments.threads * sizeof(Line)) + 8 * durasim::line_bytes;
        const std::uint64_t captures = arguments.ops / arguments.threads / 3 + 2;
        const std::uint64_t live = std::min(captures, 2 * traffic.packets() + arguments.threads);
        const std::uint64_t blocks = std::min(captures, 3 * arguments.threads + 1);
        const std::uint64_t changing = live * (durasim::block_bytes(sizeof(Node)) + durasim::RedBlackTree::bytes(shape, 1, 1)) +
                                       blocks * durasim::block_bytes(block_size(arguments.fragments_max)) + 8 * durasim::line_bytes;
        return arenas(arguments) * std::max(fixed, changing);
    }

    Intruder(Pool& pool, const Arguments& arguments) : pool_(pool), traffic_(traffic_of(arguments)) {
        network_ = pool.root<Network>();
        if (network_ == nullptr) {
            make(arguments);
            network_ = pool.root<Network>();
        }
        if (network_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "intruder: the pool belongs to another workload");
        if (network_->seed != arguments.seed || network_->flows != arguments.populate || network_->threads != arguments.threads ||
            network_->fragments_max != arguments.fragments_max || network_->attack_percent != arguments.attack_percent) {
            durasim::fail(durasim::exit_usage,
                          "intruder: the pool was made with --seed %llu --populate %llu --threads %llu --fragments-max %llu "
                          "--attack-percent %llu; use these",
                          static_cast<Long>(network_->seed), static_cast<Long>(network_->flows), static_cast<Long>(network_->threads),
                          static_cast<Long>(network_->fragments_max), static_cast<Long>(network_->attack_percent));
        }
        copy_ = *network_;
        for (std::uint64_t i = 0; i < copy_.threads; ++i) finished_.push_back(copy_.line[i].finished);
        if (copy_.threads > 1) lock_ = std::make_unique<durasim::TxLock>();
    }

    std::uint64_t populated() const { return network_->ready; }

    // The data that a thread holds, as its line says.
    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;
        std::uint64_t captured;  // number of the fragment, from 0
        const Packet* packet;
        Block* block;
        bool attack;  // is in the block
    };

    Thread enter(std::uint64_t number) const {
        const Line& line = copy_.line[number];
        Thread thread{number, finished_[number], 0, nullptr, line.block, false};
        if (line.packet != 0) {
            thread.captured = line.packet - 1;
            thread.packet = copy_.queue[thread.captured % copy_.packets];
        }
        if (line.block != nullptr) thread.attack = detector_.finds_attack(line.block->text(), line.block->words);
        return thread;
    }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t flow = t.read(network_->ready), fragments = traffic_.fragments(flow);
            const std::vector<std::uint64_t> text = traffic_.text(flow);
            for (std::uint64_t i = 0; i < fragments; ++i) {
                const std::uint64_t number = traffic_.first(flow) + i;
                Packet& packet = copy_.packet[number];
                t.write(packet.flow, flow);
                t.write(packet.fragment, i);
                t.write(packet.fragments, fragments);
                t.write(packet.text, text[i]);
                const std::uint64_t place = traffic_.place_of(number);
                t.write(copy_.queue[place], &packet);
                if constexpr (durasim::has_history) {
                    durasim::report_change(packet_object(number), 0, version_of(packet, [&t](const auto& word) { return t.read(word); }));
                    durasim::report_change(place_object(place), 0, reinterpret_cast<std::uint64_t>(t.read(copy_.queue[place])));
                }
            }
            t.write(network_->ready, flow + 1);
            durasim::report_change(durasim::populated_object, flow, flow + 1);
        });
    }

    void operation(Thread& thread) {
        std::uint64_t words[fragments_limit], count = 0;
        {
            std::unique_lock<durasim::TxLock> held;
            if (lock_ != nullptr) held = std::unique_lock(*lock_);
            Line& line = copy_.line[thread.number];
            durasim::tx([&](Tx& t) {
                const auto read = [&t](const auto& place) { return t.read(place); };
                [[maybe_unused]] std::uint64_t found = 0;
                if constexpr (durasim::has_history) found = version_of(line, read);
                const std::uint64_t stage = thread.finished % 3;
                if (stage == 0) capture(t, thread, line);
                if (stage == 1) reassemble(t, thread, line);
                if (stage == 2) count = take_whole(t, thread, line, words);
                t.write(line.finished, thread.finished + 1);
                if constexpr (durasim::has_history) {
                    durasim::report_change(durasim::progress_object(thread.number), found, version_of(line, read));
                }
            });
        }
        // The search is no part of a transaction. The one that records what it found may run twice, so the thread remembers it.
        if (thread.finished % 3 == 1) thread.block = nullptr;
        if (count != 0) thread.attack = detector_.finds_attack(words, count);
        ++thread.finished;
    }

    void compare_with_model() const {
        // The check has compared all that was found with what the counts say; here remains whether these are right.
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (copy_.line[i].finished != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(copy_.line[i].finished));
            }
        }
    }

    void print_result() const {
        std::uint64_t searched = 0, attacks = 0;
        for (std::uint64_t i = 0; i < copy_.threads; ++i) searched += copy_.line[i].searched, attacks += copy_.line[i].attacks;
        std::printf("fragments=%llu searched=%llu attacks=%llu", static_cast<Long>(copy_.captured->count), static_cast<Long>(searched),
                    static_cast<Long>(attacks));
    }

    static std::uint64_t check(const Pool& pool);
    static void dump(const Pool& pool, durasim::Dump& dump);

private:
    static constexpr durasim::MapShape shape{.value_bytes = sizeof(Session), .parameter = 0, .erases = true};

    static Traffic traffic_of(const Arguments& arguments) {
        if (arguments.populate == 0) durasim::fail(durasim::exit_usage, "intruder: --populate has to be at least 1");
        return {arguments.seed, arguments.populate, arguments.fragments_max, arguments.attack_percent};
    }

    void make(const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* network = static_cast<Network*>(t.allocate(sizeof(Network)));
            t.write(network->kind, kind_of_root);
            t.write(network->seed, arguments.seed);
            t.write(network->flows, arguments.populate);
            t.write(network->ready, 0);
            t.write(network->threads, arguments.threads);
            t.write(network->fragments_max, arguments.fragments_max);
            t.write(network->attack_percent, arguments.attack_percent);
            t.write(network->packets, traffic_.packets());
            // Memory that was never given out before is zero: nothing is captured, and no thread has done anything.
            t.write(network->packet, static_cast<Packet*>(t.allocate(traffic_.packets() * sizeof(Packet))));
            t.write(network->queue, static_cast<Packet**>(t.allocate(traffic_.packets() * sizeof(Packet*))));
            t.write(network->captured, static_cast<Captured*>(t.allocate(sizeof(Captured))));
            t.write(network->whole, static_cast<Whole*>(t.allocate(sizeof(Whole))));
            t.write(network->ring, static_cast<Block**>(t.allocate(arguments.threads * sizeof(Block*))));
            t.write(network->sessions, static_cast<Sessions*>(t.allocate(sizeof(Sessions))));
            t.write(network->line, static_cast<Line*>(t.allocate(arguments.threads * sizeof(Line))));
            pool_.set_root(t, network);
            durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // Arena 0 is not a thread's.
    static std::uint64_t arena_of(const Thread& thread) { return 1 + thread.number; }
    std::uint64_t arena_of(const void* block) const {
        return (reinterpret_cast<std::uint64_t>(block) - reinterpret_cast<std::uint64_t>(pool_.data())) / pool_.arena_bytes();
    }

    void capture(Tx& t, Thread& thread, Line& line) const {
        const std::uint64_t number = t.read(copy_.captured->count);
        thread.captured = number;
        thread.packet = t.read(copy_.queue[number % copy_.packets]);
        t.write(copy_.captured->count, number + 1);
        t.write(line.packet, number + 1);
        durasim::report_change(captured_object, number, number + 1);
        durasim::report_read(place_object(number % copy_.packets), reinterpret_cast<std::uint64_t>(thread.packet));
    }

    void reassemble(Tx& t, const Thread& thread, Line& line) const {
        if (thread.block != nullptr) record(t, thread, line);
        const Packet* packet = thread.packet;
        const std::uint64_t flow = t.read(packet->flow) + thread.captured / copy_.packets * copy_.flows;
        const std::uint64_t fragments = t.read(packet->fragments);
        if constexpr (durasim::has_history) {
            const auto number = static_cast<std::uint64_t>(packet - copy_.packet);
            durasim::report_read(packet_object(number), version_of(*packet, [&t](const auto& word) { return t.read(word); }));
        }
        t.write(line.packet, 0);
        if (fragments == 1) {
            Block* block = make_block(t, thread, flow, 1);
            t.write(block->text()[0], t.read(packet->text));
            push(t, block);
            return;
        }
        durasim::RedBlackTree tree(shape, copy_.sessions->top, arena_of(thread));
        auto* session = reinterpret_cast<Session*>(tree.find(t, flow));
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (durasim::has_history) found = session == nullptr ? 0 : version_of_session(t, session);
        if (session == nullptr) {
            session = reinterpret_cast<Session*>(tree.insert(t, flow));
            t.write(session->first, nullptr);
            t.write(session->count, 0);
        }
        const std::uint64_t fragment = t.read(packet->fragment), count = t.read(session->count) + 1;
        Node** link = &session->first;
        Node* next = t.read(*link);
        while (next != nullptr && t.read(next->fragment) < fragment) {
            link = &next->next;
            next = t.read(*link);
        }
        auto* node = static_cast<Node*>(t.allocate(sizeof(Node), arena_of(thread)));
        t.write(node->next, next);
        t.write(node->fragment, fragment);
        t.write(node->packet, packet);
        t.write(*link, node);
        t.write(session->count, count);
        if constexpr (durasim::has_history) {
            durasim::report_change(flow, found, count == fragments ? 0 : version_of_session(t, session));
        }
        if (count == fragments) complete(t, thread, flow, session, fragments);
    }

    // All fragments of a flow are there.
    void complete(Tx& t, const Thread& thread, std::uint64_t flow, Session* session, std::uint64_t fragments) const {
        Block* block = make_block(t, thread, flow, fragments);
        std::uint64_t words = 0;
        for (Node* node = t.read(session->first); node != nullptr;) {
            if (t.read(node->fragment) != words) DURASIM_VIOLATION("a fragment of flow %llu is there twice", static_cast<Long>(flow));
            t.write(block->text()[words++], t.read(t.read(node->packet)->text));
            Node* next = t.read(node->next);
            t.free(node, sizeof(Node), arena_of(node));
            node = next;
        }
        durasim::RedBlackTree(shape, copy_.sessions->top, arena_of(session)).erase(t, flow);
        push(t, block);
    }

    Block* make_block(Tx& t, const Thread& thread, std::uint64_t flow, std::uint64_t words) const {
        auto* block = static_cast<Block*>(t.allocate(block_size(words), arena_of(thread)));
        t.write(block->flow, flow);
        t.write(block->words, words);
        return block;
    }

    void push(Tx& t, Block* block) const {
        const auto read = [&t](const auto& place) { return t.read(place); };
        Whole& whole = *copy_.whole;
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (durasim::has_history) found = version_of(whole, copy_.ring, copy_.threads, read);
        const std::uint64_t pushed = t.read(whole.pushed);
        t.write(copy_.ring[pushed % copy_.threads], block);
        t.write(whole.pushed, pushed + 1);
        if constexpr (durasim::has_history) {
            durasim::report_change(whole_object, found, version_of(whole, copy_.ring, copy_.threads, read));
            durasim::report_change(block_object(t.read(block->flow)), 0, version_of(block, t.read(block->words), read));
        }
    }

    // Takes out a whole flow, if there is one; its text goes to `words`, as many of them as it returns.
    std::uint64_t take_whole(Tx& t, Thread& thread, Line& line, std::uint64_t* words) const {
        const auto read = [&t](const auto& place) { return t.read(place); };
        Whole& whole = *copy_.whole;
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (durasim::has_history) found = version_of(whole, copy_.ring, copy_.threads, read);
        const std::uint64_t popped = t.read(whole.popped);
        thread.block = nullptr;
        if (popped == t.read(whole.pushed)) {
            durasim::report_read(whole_object, found);
            return 0;
        }
        thread.block = t.read(copy_.ring[popped % copy_.threads]);
        t.write(whole.popped, popped + 1);
        t.write(line.block, thread.block);
        const std::uint64_t count = t.read(thread.block->words);
        t.read_words(words, thread.block->text(), count * text_bytes);
        if constexpr (durasim::has_history) {
            durasim::report_change(whole_object, found, version_of(whole, copy_.ring, copy_.threads, read));
            durasim::report_read(block_object(t.read(thread.block->flow)), version_of(thread.block, count, read));
        }
        return count;
    }

    // Notes what the search has found, and gives the block back.
    void record(Tx& t, const Thread& thread, Line& line) const {
        const std::uint64_t words = t.read(thread.block->words);
        if constexpr (durasim::has_history) {
            const auto read = [&t](const auto& place) { return t.read(place); };
            durasim::report_change(block_object(t.read(thread.block->flow)), version_of(thread.block, words, read), 0);
        }
        t.free(thread.block, block_size(words), arena_of(thread.block));
        t.write(line.block, nullptr);
        t.write(line.searched, t.read(line.searched) + 1);
        if (thread.attack) t.write(line.attacks, t.read(line.attacks) + 1);
    }

    static std::uint64_t version_of_session(Tx& t, const Session* session) {
        durasim::Version version;
        version.take(t.read(session->count));
        for (const Node* node = t.read(session->first); node != nullptr; node = t.read(node->next)) version.take(t.read(node->fragment));
        return version.value();
    }

    static bool is_possible(const Network* network, const Pool& pool);
    static Assembly assembly_of(const Network* network, const Traffic& traffic, std::uint64_t& operations);
    static void check_sessions(const Network* network, const Traffic& traffic, Assembly& assembly, Audit& audit);

    Pool& pool_;
    Traffic traffic_;
    Detector detector_;
    Network* network_ = nullptr;
    Network copy_{};  // what does not change once all flows are there
    std::unique_ptr<durasim::TxLock> lock_;  // for all transactions; a single thread needs none
    std::vector<std::uint64_t> finished_;    // by each thread: what the pool must hold
};

// Whether the root object is one that its parts can be looked for by.
bool Intruder::is_possible(const Network* network, const Pool& pool) {
    const std::uint64_t limit = pool.data_bytes() / durasim::line_bytes;
    return network->threads != 0 && network->threads <= durasim::threads_max && pool.arenas() == 1 + network->threads &&
           network->fragments_max != 0 && network->fragments_max <= fragments_limit && network->attack_percent <= 100 &&
           network->packets <= limit && network->flows != 0 && network->flows <= network->packets && network->ready <= network->flows;
}

void Intruder::dump(const Pool& pool, durasim::Dump& dump) {
    const Network* network = pool.root<Network>();
    if (!durasim::can_be_block(pool, network, sizeof(Network))) return dump.note_damage();
    dump.add(durasim::root_object, network->kind);
    dump.add(durasim::populated_object, network->ready);
    if (!is_possible(network, pool) || !durasim::can_be_block(pool, network->packet, network->packets * sizeof(Packet)) ||
        !durasim::can_be_block(pool, network->queue, network->packets * sizeof(Packet*)) ||
        !durasim::can_be_block(pool, network->captured, sizeof(Captured)) ||
        !durasim::can_be_block(pool, network->whole, sizeof(Whole)) ||
        !durasim::can_be_block(pool, network->ring, network->threads * sizeof(Block*)) ||
        !durasim::can_be_block(pool, network->sessions, sizeof(Sessions)) ||
        !durasim::can_be_block(pool, network->line, network->threads * sizeof(Line))) {
        return dump.note_damage();
    }
    const auto read = [](const auto& place) { return place; };
    for (std::uint64_t i = 0; i < network->packets; ++i) {
        dump.add(packet_object(i), version_of(network->packet[i], read));
        dump.add(place_object(i), reinterpret_cast<std::uint64_t>(network->queue[i]));
    }
    dump.add(captured_object, network->captured->count);
    const auto add_block = [&](const Block* block) {
        if (!durasim::can_be_block(pool, block, sizeof(Block)) || block->words > network->fragments_max ||
            !durasim::can_be_block(pool, block, block_size(block->words))) {
            return dump.note_damage();
        }
        dump.add(block_object(block->flow), version_of(block, block->words, read));
    };
    for (std::uint64_t i = 0; i < network->threads; ++i) {
        dump.add(durasim::progress_object(i), version_of(network->line[i], read));
        if (network->line[i].block != nullptr) add_block(network->line[i].block);
    }
    const Whole& whole = *network->whole;
    if (whole.pushed - whole.popped > network->threads) return dump.note_damage();
    dump.add(whole_object, version_of(whole, network->ring, network->threads, read));
    for (std::uint64_t i = whole.popped; i != whole.pushed; ++i) add_block(network->ring[i % network->threads]);
    std::uint64_t nodes_left = pool.data_bytes() / durasim::line_bytes;  // a walk of more links goes in a circle
    std::uint64_t top = network->sessions->top;
    const bool whole_tree = durasim::RedBlackTree(shape, top, 0).dump(pool, [&](std::uint64_t flow, const std::uint64_t* value) {
        const auto* session = reinterpret_cast<const Session*>(value);
        durasim::Version version;
        version.take(session->count);
        for (const Node* node = session->first; node != nullptr; node = node->next) {
            if (!durasim::can_be_block(pool, node, sizeof(Node)) || nodes_left-- == 0) return dump.note_damage();
            version.take(node->fragment);
        }
        dump.add(flow, version.value());
    });
    if (!whole_tree) dump.note_damage();
}

void check_input(const Network* network, const Traffic& traffic) {
    for (std::uint64_t flow = 0; flow < network->ready; ++flow) {
        const std::vector<std::uint64_t> text = traffic.text(flow);
        for (std::uint64_t i = 0; i < text.size(); ++i) {
            const Packet& packet = network->packet[traffic.first(flow) + i];
            if (packet.flow != flow || packet.fragment != i || packet.fragments != text.size() || packet.text != text[i]) {
                DURASIM_VIOLATION("fragment %llu of flow %llu is torn", static_cast<Long>(i), static_cast<Long>(flow));
            }
        }
    }
    const std::uint64_t there = traffic.first(network->ready);
    if (!durasim::is_untouched(network->packet + there, (network->packets - there) * sizeof(Packet))) {
        DURASIM_VIOLATION("a fragment that populating has not reached is not empty");
    }
    for (std::uint64_t place = 0; place < network->packets; ++place) {
        const std::uint64_t number = traffic.packet_at(place);
        if (network->queue[place] != (number < there ? network->packet + number : nullptr)) {
            DURASIM_VIOLATION("place %llu of the queue does not lead to its fragment", static_cast<Long>(place));
        }
    }
}

// All that was captured, except for what threads hold, was put into its flow. Counts the operations, too.
Assembly Intruder::assembly_of(const Network* network, const Traffic& traffic, std::uint64_t& operations) {
    std::uint64_t captures = 0;
    std::vector<std::uint64_t> held;
    for (std::uint64_t i = 0; i < network->threads; ++i) {
        const Line& line = network->line[i];
        if (line.finished >> durasim::operation_bits != 0) DURASIM_VIOLATION("thread %llu has an impossible count", static_cast<Long>(i));
        if ((line.packet != 0) != (line.finished % 3 == 1) || (line.block != nullptr && line.finished % 3 == 2)) {
            DURASIM_VIOLATION("thread %llu does not hold what it has after %llu operations", static_cast<Long>(i),
                              static_cast<Long>(line.finished));
        }
        operations += line.finished;
        captures += (line.finished + 2) / 3;
        if (line.packet != 0) held.push_back(line.packet - 1);
    }
    if (network->captured->count != captures) {
        DURASIM_VIOLATION("%llu fragments are out of the queue, but the threads took %llu", static_cast<Long>(network->captured->count),
                          static_cast<Long>(captures));
    }
    std::sort(held.begin(), held.end());
    if (std::adjacent_find(held.begin(), held.end()) != held.end()) DURASIM_VIOLATION("two threads hold the same fragment");
    if (!held.empty() && held.back() >= captures) DURASIM_VIOLATION("a thread holds a fragment that is in the queue");
    Assembly assembly(traffic);
    auto next = held.begin();
    for (std::uint64_t number = 0; number < captures; ++number) {
        if (next != held.end() && *next == number) {
            ++next;
        } else {
            assembly.take(number);
        }
    }
    return assembly;
}

// The tree has the flows that are not whole, each with all of its fragments that were put there.
void Intruder::check_sessions(const Network* network, const Traffic& traffic, Assembly& assembly, Audit& audit) {
    std::uint64_t top = network->sessions->top;
    const char* problem = durasim::RedBlackTree(shape, top, 0).check(audit, [&](std::uint64_t flow, const std::uint64_t* value) {
        const auto* session = reinterpret_cast<const Session*>(value);
        const auto found = assembly.partial().find(flow);
        if (found == assembly.partial().end()) DURASIM_VIOLATION("the tree has flow %llu, which it should not", static_cast<Long>(flow));
        std::uint64_t fragments = 0, count = 0;
        for (const Node* node = session->first; node != nullptr; node = node->next, ++count) {
            if (!audit.claim(node, sizeof(Node))) DURASIM_VIOLATION("a captured fragment is reachable twice or not allocated");
            if (node->fragment >= fragments_limit || fragments >> node->fragment != 0) {
                DURASIM_VIOLATION("the fragments of flow %llu are out of order", static_cast<Long>(flow));
            }
            fragments |= std::uint64_t{1} << node->fragment;
            if (node->packet != network->packet + traffic.first(flow % network->flows) + node->fragment) {
                DURASIM_VIOLATION("a fragment of flow %llu is another", static_cast<Long>(flow));
            }
        }
        if (fragments != found->second || session->count != count) {
            DURASIM_VIOLATION("flow %llu does not have the fragments that it should have", static_cast<Long>(flow));
        }
        assembly.partial().erase(found);
    });
    if (problem != nullptr) DURASIM_VIOLATION("%s", problem);
    if (!assembly.partial().empty()) DURASIM_VIOLATION("%zu flows are missing in the tree", assembly.partial().size());
}

std::uint64_t Intruder::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Network* network = pool.root<Network>();
    if (!audit.claim(network, sizeof(Network))) DURASIM_VIOLATION("the root object is not allocated");
    if (network->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a network");
    if (!is_possible(network, pool)) DURASIM_VIOLATION("the network has impossible sizes");
    const Traffic traffic(network->seed, network->flows, network->fragments_max, network->attack_percent);
    if (network->packets != traffic.packets()) DURASIM_VIOLATION("the network has impossible sizes");
    if (!audit.claim(network->packet, network->packets * sizeof(Packet)) ||
        !audit.claim(network->queue, network->packets * sizeof(Packet*)) || !audit.claim(network->captured, sizeof(Captured)) ||
        !audit.claim(network->whole, sizeof(Whole)) || !audit.claim(network->ring, network->threads * sizeof(Block*)) ||
        !audit.claim(network->sessions, sizeof(Sessions)) || !audit.claim(network->line, network->threads * sizeof(Line))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    check_input(network, traffic);
    std::uint64_t operations = 0;
    Assembly assembly = assembly_of(network, traffic, operations);
    check_sessions(network, traffic, assembly, audit);

    // Whole flows are in the ring, held by a thread, or searched; attacks in those that are not searched are not counted yet.
    const Whole& whole = *network->whole;
    std::uint64_t waiting = 0, searched = 0, attacks = 0, attacks_left = 0, held = 0;
    const auto take = [&](const Block* block) {
        if (!pool.holds(block, sizeof(Block)) || block->words > network->fragments_max || !audit.claim(block, block_size(block->words))) {
            DURASIM_VIOLATION("a whole flow is reachable twice or not allocated");
        }
        const std::uint64_t flow = block->flow % network->flows;
        if (!assembly.take_whole(block->flow)) DURASIM_VIOLATION("flow %llu is not whole, or there twice", static_cast<Long>(block->flow));
        const std::vector<std::uint64_t> text = traffic.text(flow);
        if (block->words != text.size() || std::memcmp(block->text(), text.data(), text.size() * text_bytes) != 0) {
            DURASIM_VIOLATION("the text of flow %llu is not what was sent", static_cast<Long>(block->flow));
        }
        attacks_left += traffic.is_attack(flow);
    };
    for (std::uint64_t i = 0; i < network->threads; ++i) {
        const Line& line = network->line[i];
        waiting += line.finished % 3 == 2;
        searched += line.searched;
        attacks += line.attacks;
        if (line.block == nullptr) continue;
        ++held;
        take(line.block);
    }
    if (whole.pushed != assembly.whole()) {
        DURASIM_VIOLATION("%llu flows were put into the queue of whole flows, but %llu are whole", static_cast<Long>(whole.pushed),
                          static_cast<Long>(assembly.whole()));
    }
    if (whole.popped > whole.pushed || whole.pushed - whole.popped > waiting) DURASIM_VIOLATION("a whole flow waits for no thread");
    for (std::uint64_t i = whole.popped; i < whole.pushed; ++i) take(network->ring[i % network->threads]);
    if (searched + held != whole.popped || attacks + attacks_left != assembly.attacks()) {
        DURASIM_VIOLATION("%llu flows were searched with %llu attacks, but %llu were taken, and %llu attacks are in them",
                          static_cast<Long>(searched), static_cast<Long>(attacks), static_cast<Long>(whole.popped - held),
                          static_cast<Long>(assembly.attacks() - attacks_left));
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
    if (operations != 0 && network->ready != network->flows) DURASIM_VIOLATION("there were operations before all flows were there");
    return network->ready + operations;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Intruder>(argc, argv); }
