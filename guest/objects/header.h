// The first word of every object, and the words after it.
//
// An object consists of a header word, then its references, then its data, all words of 8 bytes. It begins at a multiple of
// 16 bytes. What the header says (P-INSPECT, MICRO 2020, section III-B, has the Forwarding and the Queued bit):
//
//     bit 0        Forwarding: the object has moved to persistent memory, and all other bits are its new address
//     bit 1        Copying: a thread moves the object; no other may store to it until it forwards
//     bit 2        Queued: a copy in persistent memory, whose transitive closure may not be there yet
//     bit 3        Non-volatile: the object is in persistent memory
//     bit 4        Shared: more than the thread that made it may know the object
//     bits 8-15    in ordinary memory, the site that made it; while it is Copying, and in persistent memory, the thread that
//                  moves or has moved it
//     bits 16-39   words after the header
//     bits 40-63   how many of these are references; they come first
#ifndef DURASIM_OBJECTS_HEADER_H
#define DURASIM_OBJECTS_HEADER_H

#include <cstdint>

#include "durasim/layout.h"
#include "runtimes/store.h"

namespace durasim::objects {

// An object as the runtime sees it.
struct Object {
    std::uint64_t header;

    std::uint64_t* words() { return &header + 1; }
    const std::uint64_t* words() const { return &header + 1; }
};

inline constexpr std::uint64_t object_align_bytes = 16;
inline constexpr std::uint64_t object_words_max = (std::uint64_t{1} << 24) - 1;

class Header {
public:
    static constexpr std::uint64_t forwarding = 1, copying = 2, queued = 4, non_volatile = 8, shared = 16;

    constexpr explicit Header(std::uint64_t word) : word_(word) {}

    static constexpr Header of(std::uint64_t words, std::uint64_t references, std::uint64_t flags) {
        return Header(references << 40 | words << 16 | flags);
    }
    static Header to(const Object* moved) { return Header(reinterpret_cast<std::uint64_t>(moved) | forwarding); }

    constexpr std::uint64_t word() const { return word_; }
    constexpr bool has(std::uint64_t flags) const { return (word_ & flags) != 0; }
    constexpr Header with(std::uint64_t flags) const { return Header(word_ | flags); }
    constexpr Header without(std::uint64_t flags) const { return Header(word_ & ~flags); }
    constexpr Header of_site(std::uint64_t site) const { return of_owner(site); }
    constexpr Header of_owner(std::uint64_t thread) const { return Header((word_ & ~(std::uint64_t{0xff} << 8)) | thread << 8); }

    Object* target() const { return reinterpret_cast<Object*>(word_ & ~forwarding); }
    constexpr std::uint64_t owner() const { return word_ >> 8 & 0xff; }
    constexpr std::uint64_t site() const { return owner(); }
    constexpr std::uint64_t words() const { return word_ >> 16 & object_words_max; }
    constexpr std::uint64_t references() const { return word_ >> 40; }
    // Of the whole object.
    constexpr std::uint64_t size_bytes() const { return 8 * (1 + words()); }

    friend constexpr bool operator==(Header, Header) = default;

private:
    std::uint64_t word_;
};

inline Header header_of(const Object* object) { return Header(get(&object->header)); }

// Bytes that a heap gives an object of this many words after its header.
constexpr std::uint64_t room_bytes(std::uint64_t words) {
    return (8 * (1 + words) + object_align_bytes - 1) / object_align_bytes * object_align_bytes;
}

}  // namespace durasim::objects

#endif
