// Requests and replies of a key-value server, as text: the part of memcached's protocol that QuickCached needs for YCSB.
//
//     get user<20 digits>\r\n                                  VALUE user<20 digits> 0 <bytes>\r\n<data>\r\nEND\r\n, or END\r\n
//     set user<20 digits> 0 0 <bytes>\r\n<data>\r\n            STORED\r\n
//
// The server believes nothing of a request: what is no request gets the reply ERROR.
#ifndef DURASIM_WORKLOADS_KV_PROTOCOL_H
#define DURASIM_WORKLOADS_KV_PROTOCOL_H

#include <cstdint>
#include <cstring>

namespace durasim::kv {

inline constexpr std::uint64_t key_digits = 20, line_bytes_max = 64;
inline constexpr char line_end[] = "\r\n";

// Text in a buffer that has room for it.
class Writer {
public:
    explicit Writer(char* buffer) : begin_(buffer), end_(buffer) {}

    Writer& text(const char* words) { return bytes(words, std::strlen(words)); }
    Writer& bytes(const void* from, std::uint64_t count) {
        std::memcpy(end_, from, count);
        end_ += count;
        return *this;
    }
    Writer& number(std::uint64_t value) {
        char digits[20];
        std::uint64_t at = sizeof digits;
        do {
            digits[--at] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value != 0);
        return bytes(digits + at, sizeof digits - at);
    }
    Writer& key(std::uint64_t value) {
        text("user");
        for (std::uint64_t i = key_digits; i-- > 0; value /= 10) end_[i] = static_cast<char>('0' + value % 10);
        end_ += key_digits;
        return *this;
    }
    // The place of `count` bytes that the caller writes.
    char* room(std::uint64_t count) {
        char* const place = end_;
        end_ += count;
        return place;
    }
    std::uint64_t size_bytes() const { return static_cast<std::uint64_t>(end_ - begin_); }

private:
    char* begin_;
    char* end_;
};

// Reads text up to its end and no further.
class Reader {
public:
    Reader(const char* text, std::uint64_t size_bytes) : at_(text), end_(text + size_bytes) {}

    bool has(const char* words) {
        const std::uint64_t count = std::strlen(words);
        if (left() < count || std::memcmp(at_, words, count) != 0) return false;
        at_ += count;
        return true;
    }
    bool number(std::uint64_t& value) {
        const char* const first = at_;
        for (value = 0; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
            if (value > (~std::uint64_t{0} - static_cast<std::uint64_t>(*at_ - '0')) / 10) return false;
            value = value * 10 + static_cast<std::uint64_t>(*at_ - '0');
        }
        return at_ != first;
    }
    bool key(std::uint64_t& value) {
        if (!has("user")) return false;
        const char* const first = at_;
        return number(value) && at_ == first + key_digits;
    }
    const char* bytes(std::uint64_t count) {
        if (left() < count) return nullptr;
        const char* const place = at_;
        at_ += count;
        return place;
    }
    std::uint64_t left() const { return static_cast<std::uint64_t>(end_ - at_); }

private:
    const char* at_;
    const char* end_;
};

enum class Command { none, get, set };

struct Request {
    Command command = Command::none;
    std::uint64_t key = 0;
    const char* data = nullptr;
    std::uint64_t data_bytes = 0;
};

// The command of a request; none if it is no request.
inline Request parse(const char* text, std::uint64_t size_bytes) {
    Reader reader(text, size_bytes);
    Request request;
    std::uint64_t flags = 0, seconds = 0;
    if (reader.has("get ")) {
        if (reader.key(request.key) && reader.has(line_end) && reader.left() == 0) request.command = Command::get;
    } else if (reader.has("set ") && reader.key(request.key) && reader.has(" ") && reader.number(flags) && reader.has(" ") && reader.number(seconds) &&
               reader.has(" ") && reader.number(request.data_bytes) && reader.has(line_end)) {
        request.data = reader.bytes(request.data_bytes);
        if (request.data != nullptr && reader.has(line_end) && reader.left() == 0) request.command = Command::set;
    }
    return request;
}

// The reply to a request, as far as a client looks at it.
struct Reply {
    bool is_stored = false, is_found = false;
    const char* data = nullptr;
    std::uint64_t data_bytes = 0;
};

inline Reply parse_reply(const char* text, std::uint64_t size_bytes, std::uint64_t key) {
    Reader reader(text, size_bytes);
    Reply reply;
    std::uint64_t answered = 0, flags = 0;
    if (reader.has("STORED\r\n")) {
        reply.is_stored = reader.left() == 0;
    } else if (reader.has("VALUE ") && reader.key(answered) && answered == key && reader.has(" ") && reader.number(flags) && reader.has(" ") &&
               reader.number(reply.data_bytes) && reader.has(line_end)) {
        reply.data = reader.bytes(reply.data_bytes);
        reply.is_found = reply.data != nullptr && reader.has("\r\nEND\r\n") && reader.left() == 0;
    }
    return reply;
}

}  // namespace durasim::kv

#endif
