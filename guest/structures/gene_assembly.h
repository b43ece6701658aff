// The data of genome (workloads/genome.cpp) in the pool: segments, and the tables and entries in which they become a gene again.
// With what checks and dumps make of them.
#ifndef DURASIM_STRUCTURES_GENE_ASSEMBLY_H
#define DURASIM_STRUCTURES_GENE_ASSEMBLY_H

#include <algorithm>
#include <cstdint>
#include <vector>

#include "durasim/random.h"
#include "structures/blocks.h"
#include "structures/sorted_chains.h"
#include "workloads/harness.h"

namespace durasim {

inline constexpr std::uint64_t kind_of_gene = 0x656D6F6E6567;  // "genome"
// STAMP's chunk of the first stage.
inline constexpr std::uint64_t segments_per_operation = 12;

// A segment of the set. Entries are named by their numbers, from 1 where 0 means another thing.
struct alignas(64) Entry {
    std::uint64_t segment;      // its number, from 1; 0: not taken
    std::uint64_t next;         // the entry that was appended, from 1; 0: none
    std::uint64_t start;        // if it is the last of a chain: the first one, from 1; 0: itself
    std::uint64_t end;          // if it is the first of a chain: the last one, from 1; 0: itself
    std::uint64_t grown;        // if it is the first: by how much the chain is longer than a segment
    std::uint64_t overlap;      // with the next one
    std::uint64_t is_appended;  // to another
};

struct GeneRoot;

// One assembly. The chains of all tables follow, then the entries.
struct alignas(64) Assembly {
    Assembly* before;

    SortedChain& chain(const GeneRoot& root, std::uint64_t table, std::uint64_t number);
    Entry& entry(const GeneRoot& root, std::uint64_t number);
};

// The stage that all threads are at.
struct alignas(64) GeneStage {
    std::uint64_t number;  // over all assemblies
    std::uint64_t unique;  // segments in the set, from the second stage of an assembly on
    Assembly* assembly;
};

// The progress of a part of the work, and the operations of the thread of the same number.
struct alignas(64) Part {
    std::uint64_t finished;  // operations of the thread
    std::uint64_t stage;     // of what follows, from 1; 0: none yet
    std::uint64_t place;     // the next segment, chain of the set, or entry
    ChainNode* node;         // in the second stage: of the segment at hand; then the next candidate, null before the first
    std::uint64_t entry;     // of that segment once it has one, before that where to look for one
    std::uint64_t step;      // transactions of that segment
    std::uint64_t matched;   // entries of this part that others were appended to, in this assembly
    std::uint64_t compared;  // transactions of the third stages, in all assemblies
};
static_assert(sizeof(Entry) == line_bytes && sizeof(Part) == line_bytes);

struct alignas(64) GeneRoot {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t segments;
    std::uint64_t ready;    // that populating has made
    std::uint64_t gene;     // nucleotides, and chains of a table
    std::uint32_t segment;  // nucleotides
    std::uint32_t threads;
    std::uint64_t* content;  // of each segment
    Part* part;
    GeneStage stage;

    // One for the set, one for the entries, one for each overlap.
    std::uint64_t stages() const { return segment + std::uint64_t{1}; }
    // Table 0 is the set, table n that of the first n nucleotides.
    std::uint64_t tables() const { return segment + std::uint64_t{1}; }
    std::uint64_t entries() const { return gene - segment + 1; }
    std::uint64_t assembly_bytes() const {
        return sizeof(Assembly) + tables() * gene * sizeof(SortedChain) + entries() * sizeof(Entry);
    }

    std::uint64_t prefix(std::uint64_t word, std::uint64_t length) const { return word >> 2 * (segment - length); }
    // Shorter than the segment.
    std::uint64_t suffix(std::uint64_t word, std::uint64_t length) const { return word & ((std::uint64_t{1} << 2 * length) - 1); }
    std::uint64_t chain_of(std::uint64_t nucleotides, std::uint64_t length) const { return mix(mix(length) + nucleotides) % gene; }

    struct Limits {
        std::uint64_t begin, end;
    };
    // The part of this number in a stage of this kind (0: segments, 1: chains of the set, then: entries). Parts go round.
    Limits limits(std::uint64_t kind_of_stage, std::uint64_t round, std::uint64_t number, std::uint64_t unique) const {
        const std::uint64_t all = kind_of_stage == 0 ? segments : kind_of_stage == 1 ? gene : unique, share = (number + round) % threads;
        const std::uint64_t begin = share_before(all, threads, share);
        return {begin, begin + share_of(all, threads, share)};
    }
    // Operations of the first stage.
    std::uint64_t chunks() const {
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < threads; ++i) {
            sum += (share_of(segments, threads, i) + segments_per_operation - 1) / segments_per_operation;
        }
        return sum;
    }
};

inline SortedChain& Assembly::chain(const GeneRoot& root, std::uint64_t table, std::uint64_t number) {
    return reinterpret_cast<SortedChain*>(this + 1)[table * root.gene + number];
}
inline Entry& Assembly::entry(const GeneRoot& root, std::uint64_t number) {
    return reinterpret_cast<Entry*>(&chain(root, root.tables(), 0))[number];
}

// The first and the last one of the chain that ends or starts with `entry`.
template <class Read>
std::uint64_t start_of(Assembly& assembly, const GeneRoot& root, std::uint64_t entry, Read&& read) {
    const std::uint64_t start = read(assembly.entry(root, entry).start);
    return start == 0 ? entry : start - 1;
}
template <class Read>
std::uint64_t end_of(Assembly& assembly, const GeneRoot& root, std::uint64_t entry, Read&& read) {
    const std::uint64_t end = read(assembly.entry(root, entry).end);
    return end == 0 ? entry : end - 1;
}

// Objects are segments, the stage, parts (each is the progress of its thread), and chains and entries of each assembly.
inline constexpr std::uint64_t stage_object = std::uint64_t{1} << 61;
constexpr std::uint64_t segment_object(std::uint64_t number) { return std::uint64_t{1} << 62 | number; }
constexpr std::uint64_t chain_object(std::uint64_t round, std::uint64_t table, std::uint64_t number) {
    return round << 32 | table << 24 | number;
}
constexpr std::uint64_t entry_object(std::uint64_t round, std::uint64_t number) { return chain_object(round, 63, number); }

inline std::uint64_t segment_version(std::uint64_t content) { return version_of(&content, 1); }

template <class Read>
std::uint64_t stage_version(const GeneStage& stage, Read&& read) {
    Version version;
    version.take(read(stage.number));
    version.take(read(stage.unique));
    return version.value();
}
// Operations and steps make each version new.
template <class Read>
std::uint64_t part_version(const Part& part, Read&& read) {
    Version version;
    for (const std::uint64_t* word : {&part.finished, &part.stage, &part.place, &part.entry, &part.step, &part.matched, &part.compared}) {
        version.take(read(*word));
    }
    version.take(read(part.node) != nullptr ? read(read(part.node)->item) + 1 : 0);
    return read(part.finished) == 0 && read(part.stage) == 0 ? 0 : version.value();
}
template <class Read>
std::uint64_t entry_version(const Entry& entry, Read&& read) {
    Version version;
    for (const auto* word : {&entry.segment, &entry.next, &entry.start, &entry.end, &entry.grown, &entry.overlap, &entry.is_appended}) {
        version.take(read(*word));
    }
    return read(entry.segment) == 0 ? 0 : version.value();
}

inline std::vector<std::uint8_t> gene_of(const GeneRoot& root) {
    Random random(mix(root.seed) ^ kind_of_gene);
    std::vector<std::uint8_t> gene(root.gene);
    for (std::uint8_t& nucleotide : gene) nucleotide = static_cast<std::uint8_t>(random.below(4));
    return gene;
}

// The start of a segment in the gene. The last ones lie so close that each overlaps the next, from one end to the other.
inline std::uint64_t position_of(const GeneRoot& root, std::uint64_t number) {
    const std::uint64_t last = root.gene - root.segment, step = std::max<std::uint64_t>(1, root.segment - 1), cover = last / step + 2;
    if (root.segments >= cover && number >= root.segments - cover) return std::min(last, (number - (root.segments - cover)) * step);
    return Random(mix(root.seed) + number * 0x632BE59BD9B4E019u).below(last + 1);
}

inline std::uint64_t content_at(const std::vector<std::uint8_t>& gene, std::uint64_t position, std::uint64_t length) {
    std::uint64_t content = 0;
    for (std::uint64_t i = 0; i < length; ++i) content = content << 2 | gene[position + i];
    return content;
}
inline std::uint64_t content_of(const GeneRoot& root, const std::vector<std::uint8_t>& gene, std::uint64_t number) {
    return content_at(gene, position_of(root, number), root.segment);
}

// The contents of all segments, each once, in order.
inline std::vector<std::uint64_t> unique_segments(const GeneRoot& root) {
    const std::vector<std::uint8_t> gene = gene_of(root);
    std::vector<bool> begins(root.gene);
    for (std::uint64_t i = 0; i < root.segments; ++i) begins[position_of(root, i)] = true;
    std::vector<std::uint64_t> contents;
    for (std::uint64_t i = 0; i < root.gene; ++i) {
        if (begins[i]) contents.push_back(content_at(gene, i, root.segment));
    }
    std::sort(contents.begin(), contents.end());
    contents.erase(std::unique(contents.begin(), contents.end()), contents.end());
    return contents;
}

// Whether the segments cover the gene, and no part of it that is as long as the shortest overlap of neighbours occurs twice.
inline bool is_unambiguous(const GeneRoot& root, const std::vector<std::uint8_t>& gene) {
    std::vector<bool> begins(root.gene);
    for (std::uint64_t i = 0; i < root.segments; ++i) begins[position_of(root, i)] = true;
    if (!begins[0] || !begins[root.gene - root.segment]) return false;
    std::uint64_t before = 0, shortest = root.segment - 1;
    for (std::uint64_t i = 1; i <= root.gene - root.segment; ++i) {
        if (!begins[i]) continue;
        if (i - before >= root.segment) return false;
        shortest = std::min(shortest, root.segment - (i - before));
        before = i;
    }
    std::vector<std::uint64_t> parts;
    for (std::uint64_t i = 0; i + shortest <= root.gene; ++i) parts.push_back(content_at(gene, i, shortest));
    std::sort(parts.begin(), parts.end());
    return std::adjacent_find(parts.begin(), parts.end()) == parts.end();
}

// The text of the chains of a complete assembly, one after the other. The assembly has been checked.
inline std::vector<std::uint8_t> sequence_of(const GeneRoot& root, Assembly& assembly) {
    std::vector<std::uint8_t> sequence;
    for (std::uint64_t first = 0; first < root.entries(); ++first) {
        const Entry* entry = &assembly.entry(root, first);
        if (entry->segment == 0 || entry->is_appended != 0) continue;
        for (std::uint64_t known = 0;; known = entry->overlap, entry = &assembly.entry(root, entry->next - 1)) {
            const std::uint64_t content = root.content[entry->segment - 1];
            for (std::uint64_t i = known; i < root.segment; ++i) {
                sequence.push_back(static_cast<std::uint8_t>(content >> 2 * (root.segment - 1 - i) & 3));
            }
            if (entry->next == 0) break;
        }
    }
    return sequence;
}

}  // namespace durasim

#include "structures/gene_check.h"

#endif
