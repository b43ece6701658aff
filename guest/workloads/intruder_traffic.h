// The traffic that intruder watches, the search for attacks in it, and its state after a number of captures.
#ifndef DURASIM_WORKLOADS_INTRUDER_TRAFFIC_H
#define DURASIM_WORKLOADS_INTRUDER_TRAFFIC_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "durasim/random.h"

namespace durasim::intruder {

inline constexpr std::uint64_t text_bytes = 8;  // of a fragment
inline constexpr std::uint64_t fragments_limit = 64;
inline constexpr std::uint64_t signatures = 64, signature_bytes = 6;

inline char letter_of(std::uint64_t signature, std::uint64_t place) {
    return static_cast<char>('a' + durasim::mix(signature * signature_bytes + place + 1) % 26);
}

// The traffic: all of it follows from the seed.
class Traffic {
public:
    Traffic(std::uint64_t seed, std::uint64_t flows, std::uint64_t fragments_max, std::uint64_t attack_percent)
        : seed_(seed), attack_percent_(attack_percent), first_(1, 0) {
        for (std::uint64_t flow = 0; flow < flows; ++flow) {
            durasim::Random random(durasim::mix(~seed) + flow * 0x632BE59BD9B4E019u);
            first_.push_back(first_.back() + 1 + random.below(fragments_max));
        }
        order_.resize(packets());
        for (std::uint64_t i = 0; i < packets(); ++i) order_[i] = i;
        durasim::Random random(durasim::mix(seed + 1));
        for (std::uint64_t i = packets(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
        place_.resize(packets());
        for (std::uint64_t i = 0; i < packets(); ++i) place_[order_[i]] = i;
    }

    std::uint64_t flows() const { return first_.size() - 1; }
    std::uint64_t packets() const { return first_.back(); }
    // Packets are numbered flow after flow; this is the first of a flow, and how many it has.
    std::uint64_t first(std::uint64_t flow) const { return first_[flow]; }
    std::uint64_t fragments(std::uint64_t flow) const { return first_[flow + 1] - first_[flow]; }
    std::uint64_t flow_of(std::uint64_t packet) const {
        return static_cast<std::uint64_t>(std::upper_bound(first_.begin(), first_.end(), packet) - first_.begin()) - 1;
    }
    // The packet at a place of the queue, and the place of a packet.
    std::uint64_t packet_at(std::uint64_t place) const { return order_[place]; }
    std::uint64_t place_of(std::uint64_t packet) const { return place_[packet]; }

    bool is_attack(std::uint64_t flow) const { return durasim::Random(durasim::mix(seed_) ^ flow).below(100) < attack_percent_; }

    // The text of a flow. Each third character is a digit, so no signature, which has letters only, is there by chance. One that is
    // put in has letters of any case.
    std::vector<std::uint64_t> text(std::uint64_t flow) const {
        durasim::Random random(durasim::mix(seed_ + flow));
        std::vector<char> characters(fragments(flow) * text_bytes);
        for (std::size_t i = 0; i < characters.size(); ++i) {
            characters[i] = static_cast<char>(i % 3 == 2 ? '0' + random.below(10) : 'A' + random.below(26));
        }
        if (is_attack(flow)) {
            const std::uint64_t signature = random.below(signatures), at = random.below(characters.size() - signature_bytes + 1);
            for (std::uint64_t i = 0; i < signature_bytes; ++i) {
                const char letter = letter_of(signature, i);
                characters[at + i] = random.below(2) == 0 ? letter : static_cast<char>(letter - 'a' + 'A');
            }
        }
        std::vector<std::uint64_t> words(fragments(flow));
        std::memcpy(words.data(), characters.data(), characters.size());
        return words;
    }

private:
    std::uint64_t seed_, attack_percent_;
    std::vector<std::uint64_t> first_, order_, place_;
};

// The detector: a table of signatures, and a search for each of them.
class Detector {
public:
    Detector() {
        for (std::uint64_t s = 0; s < signatures; ++s) {
            for (std::uint64_t i = 0; i < signature_bytes; ++i) signature_[s][i] = letter_of(s, i);
        }
    }

    bool finds_attack(const std::uint64_t* words, std::uint64_t count) const {
        char text[fragments_limit * text_bytes];
        const std::uint64_t size = count * text_bytes;
        std::memcpy(text, words, size);
        for (std::uint64_t i = 0; i < size; ++i) {
            if (text[i] >= 'A' && text[i] <= 'Z') text[i] = static_cast<char>(text[i] - 'A' + 'a');
        }
        for (const auto& signature : signature_) {
            for (std::uint64_t at = 0; at + signature_bytes <= size; ++at) {
                std::uint64_t i = 0;
                while (i < signature_bytes && text[at + i] == signature[i]) ++i;
                if (i == signature_bytes) return true;
            }
        }
        return false;
    }

private:
    char signature_[signatures][signature_bytes];
};

// The result of the captured fragments together: flows that are whole, and fragments of others.
class Assembly {
public:
    explicit Assembly(const Traffic& traffic) : traffic_(traffic) {}

    // The fragment with this number in the queue, counted through all passes, was put into its flow.
    void take(std::uint64_t number) {
        const std::uint64_t packet = traffic_.packet_at(number % traffic_.packets()), flow = traffic_.flow_of(packet);
        const std::uint64_t pass = number / traffic_.packets(), id = flow + pass * traffic_.flows();
        std::uint64_t& fragments = partial_[id];
        fragments |= std::uint64_t{1} << (packet - traffic_.first(flow));
        if (fragments != ~std::uint64_t{0} >> (64 - traffic_.fragments(flow))) return;
        partial_.erase(id);
        ++whole_;
        attacks_ += traffic_.is_attack(flow);
        if (is_whole_.size() <= id) is_whole_.resize(id + 1);
        is_whole_[id] = true;
    }

    // The fragments of a flow that are there, a bit for each; 0 for one that is whole or has none.
    std::unordered_map<std::uint64_t, std::uint64_t>& partial() { return partial_; }
    std::uint64_t whole() const { return whole_; }
    std::uint64_t attacks() const { return attacks_; }

    // Whether the flow is whole; another time it is not asked for again.
    bool take_whole(std::uint64_t id) {
        if (id >= is_whole_.size() || !is_whole_[id]) return false;
        is_whole_[id] = false;
        return true;
    }

private:
    const Traffic& traffic_;
    std::unordered_map<std::uint64_t, std::uint64_t> partial_;
    std::vector<bool> is_whole_;
    std::uint64_t whole_ = 0, attacks_ = 0;
};

}  // namespace durasim::intruder

#endif
