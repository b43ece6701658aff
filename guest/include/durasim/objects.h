// Objects, written once for every way of keeping them: references between typed objects, reached from named roots.
//
//     struct Node {
//         static constexpr Placement placement = Placement::durable;  // for ideal-r alone
//         static constexpr std::uint64_t references = 1;              // they come first
//         Ref<Node> next;
//         std::uint64_t key;
//     };
//     static Site nodes(Node::placement);
//
//     object_runtime.operation([&](auto& o) {
//         auto node = o.template make<Node>(nodes);
//         node.template set<&Node::key>(key);
//         node.template set<&Node::next>(o.template durable_root<Node>(0));
//         o.set_durable_root(0, node.finish());
//     });
//
// The backend chosen when the program is built decides what that means. Under `autopersist` what a durable root reaches
// is in persistent memory: objects are born in ordinary memory and move when a durable one comes to refer to them; each
// store to a durable object is durable before the next (sequential persistency), and those of a region are durable together.
// Under `p-inspect` the same holds, and hardware checks accesses. Under `ideal-r` the user has said which objects are durable, and none moves. Other backends keep plain objects.
//
// An operation is the time in which a thread may hold references in variables: before it begins and after it has ended, other
// threads may move and free objects. Locks are taken before an operation begins and released when it has ended. An
// operation may have one region, and makes no durable stores outside of it then.
#ifndef DURASIM_OBJECTS_H
#define DURASIM_OBJECTS_H

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "durasim/error.h"
#include "durasim/pool.h"
#include "durasim/tx.h"
#include "objects/checks.h"
#include "objects/collector.h"
#include "objects/heap.h"
#include "objects/pointer_update.h"
#include "objects/profile.h"
#include "objects/reached.h"

#if !defined(DURASIM_OBJECTS_)
#error "this backend keeps no objects: choose one whose header in guest/backends defines DURASIM_OBJECTS_"
#endif
#include DURASIM_OBJECTS_

namespace durasim {

using objects::ObjectOptions;
using objects::Placement;
using objects::Site;

// A reference to an object of type T, or to none. Two may refer to one object and differ in their bits: Operation::same()
// compares.
template <class T>
class Ref {
public:
    constexpr Ref() = default;
    explicit Ref(objects::Object* object) : object_(object) {}

    explicit operator bool() const { return object_ != nullptr; }
    objects::Object* object() const { return object_; }

private:
    objects::Object* object_ = nullptr;
};

// An array of references (Element is a Ref) or of words. Its length is that of the object.
template <class Element, Placement where>
struct Array {
    static_assert(sizeof(Element) == 8);
    static constexpr Placement placement = where;
    static constexpr bool has_references = !std::is_same_v<Element, std::uint64_t>;
    using element = Element;
};

namespace objects {

template <class T>
struct IsRef : std::false_type {};
template <class T>
struct IsRef<Ref<T>> : std::true_type {};

template <class T>
std::uint64_t word_of_value(T value) {
    if constexpr (IsRef<T>::value) {
        return reinterpret_cast<std::uint64_t>(value.object());
    } else {
        static_assert(std::is_same_v<T, std::uint64_t>, "a field is a reference or a word");
        return value;
    }
}

template <class T>
T value_of_word(std::uint64_t word) {
    if constexpr (IsRef<T>::value) {
        return T(reinterpret_cast<Object*>(word));
    } else {
        return word;
    }
}

template <class>
struct FieldOf;
template <class T, class Value>
struct FieldOf<Value T::*> {
    using holder = T;
    using value = Value;
};

// An element of a field that is an array.
template <auto field>
using ElementOf = std::remove_extent_t<typename FieldOf<decltype(field)>::value>;

// The word after the header that a field is, or its first one if it is an array.
template <auto field>
std::uint64_t index_of() {
    using T = typename FieldOf<decltype(field)>::holder;
    alignas(T) static constexpr char place[sizeof(T)] = {};
    const auto* object = reinterpret_cast<const T*>(place);
    return static_cast<std::uint64_t>(reinterpret_cast<const char*>(&(object->*field)) - place) / 8;
}

class Operation;

// An object that has just been made. Its words are 0 until they are set; no other thread knows it before finish().
template <class T>
class Fresh {
public:
    Fresh(Barriers& barriers, Thread& thread, Object* object) : barriers_(barriers), thread_(thread), object_(object) {}

    template <auto field>
    void set(std::type_identity_t<typename FieldOf<decltype(field)>::value> value) {
        set_word(index_of<field>(), value);
    }
    template <class Value>
    void set_at(std::uint64_t index, Value value) {
        set_word(index, value);
    }
    template <auto field>
    void set_at(std::uint64_t index, std::type_identity_t<ElementOf<field>> value) {
        set_word(index_of<field>() + index, value);
    }

    Ref<T> finish() {
        barriers_.finish(thread_, object_);
        return Ref<T>(object_);
    }

private:
    template <class Value>
    void set_word(std::uint64_t index, Value value) {
        if constexpr (IsRef<Value>::value) {
            barriers_.initialize_reference(thread_, object_, index, value.object());
        } else {
            barriers_.initialize(object_, index, value);
        }
    }

    Barriers& barriers_;
    Thread& thread_;
    Object* object_;
};

// The accesses of a thread to objects in an operation.
class Operation {
public:
    Operation(Heap& heap, Barriers& barriers, Thread& thread) : heap_(heap), barriers_(barriers), thread_(thread) {}

    template <class T>
    Fresh<T> make(Site& site) {
        static_assert(sizeof(T) % 8 == 0 && std::is_trivially_destructible_v<T>);
        return Fresh<T>(barriers_, thread_, barriers_.allocate(thread_, site, sizeof(T) / 8, T::references));
    }

    template <class A>
    Fresh<A> make_array(Site& site, std::uint64_t length) {
        if (length > object_words_max) fail(exit_runtime, "durasim: an array of %llu words is larger than an object may be", static_cast<unsigned long long>(length));
        return Fresh<A>(barriers_, thread_, barriers_.allocate(thread_, site, length, A::has_references ? length : 0));
    }

    template <auto field>
    auto get(Ref<typename FieldOf<decltype(field)>::holder> holder) {
        return value_of_word<typename FieldOf<decltype(field)>::value>(barriers_.load(holder.object(), index_of<field>()));
    }

    template <auto field>
    void set(Ref<typename FieldOf<decltype(field)>::holder> holder, std::type_identity_t<typename FieldOf<decltype(field)>::value> value) {
        using T = typename FieldOf<decltype(field)>::holder;
        store<T::placement>(holder.object(), index_of<field>(), value);
    }

    template <class Element, Placement where>
    Element at(Ref<Array<Element, where>> array, std::uint64_t index) {
        return value_of_word<Element>(barriers_.load(array.object(), index));
    }
    template <class Element, Placement where>
    void set_at(Ref<Array<Element, where>> array, std::uint64_t index, std::type_identity_t<Element> value) {
        store<where>(array.object(), index, value);
    }
    // Sets an element of a field that is an array.
    template <auto field>
    ElementOf<field> at(Ref<typename FieldOf<decltype(field)>::holder> holder, std::uint64_t index) {
        return value_of_word<ElementOf<field>>(barriers_.load(holder.object(), index_of<field>() + index));
    }
    template <auto field>
    void set_at(Ref<typename FieldOf<decltype(field)>::holder> holder, std::uint64_t index, std::type_identity_t<ElementOf<field>> value) {
        using T = typename FieldOf<decltype(field)>::holder;
        store<T::placement>(holder.object(), index_of<field>() + index, value);
    }
    template <Placement where>
    void set_words(Ref<Array<std::uint64_t, where>> array, std::uint64_t index, const std::uint64_t* from, std::uint64_t count) {
        barriers_.template store_words<where>(thread_, array.object(), index, from, count);
    }
    template <class Element, Placement where>
    std::uint64_t length(Ref<Array<Element, where>> array) {
        return header_of(barriers_.resolve(array.object())).words();
    }

    template <class T>
    bool same(Ref<T> a, Ref<T> b) const {
        return a.object() == b.object() || (a && b && barriers_.resolve(a.object()) == barriers_.resolve(b.object()));
    }

    // The roots of durable data.
    template <class T>
    Ref<T> durable_root(std::uint64_t number) {
        check_root(number);
        return Ref<T>(reinterpret_cast<Object*>(barriers_.load(heap_.durable_roots, number)));
    }
    template <class T>
    void set_durable_root(std::uint64_t number, Ref<T> value) {
        check_root(number);
        barriers_.template store_reference<Placement::durable>(thread_, heap_.durable_roots, number, value.object());
    }

    // The roots of data that is gone with the power.
    template <class T>
    Ref<T> volatile_root(std::uint64_t number) {
        check_root(number);
        return Ref<T>(reinterpret_cast<Object*>(barriers_.load(heap_.volatile_roots, number)));
    }
    template <class T>
    void set_volatile_root(std::uint64_t number, Ref<T> value) {
        check_root(number);
        barriers_.template store_reference<Placement::ordinary>(thread_, heap_.volatile_roots, number, value.object());
    }

    // A failure-atomic region: what `body` stores to durable objects survives a power failure as a whole, or not at all.
    template <class Body>
    void region(Body&& body) {
        barriers_.stores().begin_region(thread_);
        body();
        barriers_.stores().end_region(thread_);
    }

protected:
    Object* resolve(Object* object) const { return barriers_.resolve(object); }

private:
    static void check_root(std::uint64_t number) {
        if (number >= roots_max) fail(exit_usage, "durasim: there is no root %llu; there are %llu", static_cast<unsigned long long>(number), static_cast<unsigned long long>(roots_max));
    }

    template <Placement where, class Value>
    void store(Object* holder, std::uint64_t index, Value value) {
        if constexpr (IsRef<Value>::value) {
            barriers_.template store_reference<where>(thread_, holder, index, value.object());
        } else {
            barriers_.template store<where>(thread_, holder, index, value);
        }
    }

    Heap& heap_;
    Barriers& barriers_;
    Thread& thread_;
};

// The accesses of a thread to a pool that may be damaged: an object that has not the shape of its type ends the program.
class CheckedOperation : public Operation {
public:
    using Operation::Operation;

    template <auto field>
    auto get(Ref<typename FieldOf<decltype(field)>::holder> holder) {
        check(holder);
        return Operation::get<field>(holder);
    }
    template <class Element, Placement where>
    Element at(Ref<Array<Element, where>> array, std::uint64_t index) {
        check(length(array) > index);
        return Operation::at(array, index);
    }
    template <auto field>
    ElementOf<field> at(Ref<typename FieldOf<decltype(field)>::holder> holder, std::uint64_t index) {
        check(holder);
        check(index < std::extent_v<typename FieldOf<decltype(field)>::value>);
        return Operation::at<field>(holder, index);
    }
    template <class Element, Placement where>
    std::uint64_t length(Ref<Array<Element, where>> array) {
        const Header header = header_of_known(array.object());
        check(header.references() == (Array<Element, where>::has_references ? header.words() : 0));
        return header.words();
    }

private:
    template <class T>
    void check(Ref<T> holder) {
        const Header header = header_of_known(holder.object());
        check(header.words() == sizeof(T) / 8 && header.references() == T::references);
    }
    Header header_of_known(Object* object) {
        check(object != nullptr);
        return header_of(resolve(object));
    }
    static void check(bool is_right) {
        if (!is_right) fail(exit_violation, "durasim: violation: an object has not the shape that what refers to it expects");
    }
};

inline constinit thread_local Thread* this_thread = nullptr;

// The objects of the program.
class ObjectRuntime {
public:
    static constexpr bool moves_objects = Barriers::moves_objects;
    static constexpr bool is_durable = Barriers::is_durable;

    // Takes a pool that has been opened; a new one gets its roots. What durable roots reach is in use from then on.
    void attach(Pool& pool, const ObjectOptions& options, unsigned threads) {
        options_ = options;
        const bool is_fresh = pool.data()->root == 0;
        auto* place = reinterpret_cast<char*>(pool.data() + 1);
        heap_.attach(place, pool.data_bytes() - sizeof(ArenaHeader), options_.volatile_heap_bytes, is_fresh);
        if (!is_fresh) recover_heap(heap_.persistent, heap_.durable_roots);
        heap_.persistent.rebuilt();
        if (is_fresh) publish_roots(pool);
        collect_at_[0] = half_way(heap_.volatile_space);
        collect_at_[1] = half_way(heap_.persistent);
        configure_regions(runtime);
        for (std::uint64_t i = 0; i < object_threads_max; ++i) heap_.threads.of(i).number = i;
        Checks::attach(heap_);
        if (Barriers::moves_objects && options_.sweep_forwarders != 0) {
            pointer_update_ = std::make_unique<PointerUpdate>(heap_, options_.sweep_forwarders, threads);
        }
        enter_thread(0);
    }

    bool is_attached() const { return heap_.durable_roots != nullptr; }

    // No further sweep of the pointer update thread.
    void stop() {
        if (pointer_update_ == nullptr) return;
        sweeps_ += pointer_update_->sweeps;
        pointer_update_.reset();
    }

    // Ends what a power failure has cut in a pool whose logs have been undone.
    static void recover(const Pool& pool) {
        if (pool.data()->root == 0) return;
        Space space;
        recover_heap(attach_to(pool, space), roots_of(pool));
    }

    // The error in what durable roots reach in a pool that has been recovered, null if there is none. Plain objects are
    // nowhere but in the process that made them.
    const char* problem_in(const Pool& pool) const {
        if (!Barriers::is_durable && is_attached()) return nullptr;
        Space space;
        return Reached(attach_to(pool, space), roots_of(pool), false).problem();
    }

    static Object* roots_of(const Pool& pool) { return reinterpret_cast<Object*>(pool.data() + 1); }

    void enter_thread(std::uint64_t number) {
        this_thread = &heap_.threads.of(number);
        Checks::enter_thread(heap_);
    }

    template <class Body>
    void operation(Body&& body) {
        perform<Operation>(body);
    }

    // An operation that only reads, and believes nothing of what it reads.
    template <class Body>
    void examine(Body&& body) {
        perform<CheckedOperation>(body);
    }

    std::uint64_t forwarders() const { return heap_.forwarders.total; }
    std::uint64_t sweeps() const { return sweeps_ + (pointer_update_ == nullptr ? 0 : pointer_update_->sweeps); }
    std::uint64_t collections() const { return collections_; }

#if defined(DURASIM_CHECKED_ACCESSES_)
    HandlerCalls handler_calls() const { return barriers_.handler_calls(); }
    void handle_access(std::uint64_t number) { barriers_.handle(*this_thread, number); }
#endif

private:
    template <class Kind, class Body>
    void perform(Body& body) {
        Thread& thread = *this_thread;
        heap_.threads.begin_operation(thread);
        barriers_.stores().begin_operation(thread);
        Kind operation(heap_, barriers_, thread);
        body(operation);
        barriers_.stores().end_operation(thread);
        heap_.threads.end_operation(thread);
        if (pointer_update_ != nullptr) pointer_update_->notice();
        if (wants_collection()) [[unlikely]] collect(thread);
    }

    static Space& attach_to(const Pool& pool, Space& space) {
        auto* place = reinterpret_cast<char*>(pool.data() + 1);
        space.attach(place + 2 * line_bytes, pool.data_bytes() - sizeof(ArenaHeader) - 2 * line_bytes, "persistent", "pool-bytes", false);
        return space;
    }

    static void recover_heap(Space& persistent, Object* roots) {
        const Reached reached(persistent, roots, true);
        if (reached.problem() != nullptr) fail(exit_violation, "durasim: violation: %s", reached.problem());
    }

    // The pool has objects from here on.
    void publish_roots(Pool& pool) {
        put(&pool.data()->root, reinterpret_cast<std::uint64_t>(heap_.durable_roots));
        durasim_clean(&pool.data()->root);
        durasim_persist_fence();
    }

    // Regions log words (P-INSPECT, MICRO 2020, section V-D: the old value of what is stored).
    template <class R>
    static void configure_regions(R& logs) {
        if constexpr (requires { logs.options.log_words; }) {
            logs.options.log_words = true;
        }
    }

    // Half of what was free after the last collection has been taken.
    bool wants_collection() const { return heap_.volatile_space.used_bytes() >= collect_at_[0] || heap_.persistent.used_bytes() >= collect_at_[1]; }

    [[gnu::noinline]] void collect(Thread& thread) {
        heap_.threads.stop_others(thread, [&] {
            Collector(heap_).collect();
            Checks::none_forwards();
            collect_at_[0] = half_way(heap_.volatile_space);
            collect_at_[1] = half_way(heap_.persistent);
            ++collections_;
        });
    }

    static std::uint64_t half_way(const Space& space) { return space.used_bytes() + (space.size_bytes() - space.used_bytes()) / 2; }

    Heap heap_;
    ObjectOptions options_;
    Barriers barriers_{heap_, options_};
    std::unique_ptr<PointerUpdate> pointer_update_;
    std::uint64_t collect_at_[2] = {};
    std::uint64_t collections_ = 0, sweeps_ = 0;
};

}  // namespace objects

// The one instance. It is never destroyed: a program that gives up in the middle of an operation leaves without waiting for
// the pointer update thread, which would wait for that operation.
inline objects::ObjectRuntime& object_runtime = *new objects::ObjectRuntime;

}  // namespace durasim

#if defined(DURASIM_CHECKED_ACCESSES_)
extern "C" [[gnu::used]] inline std::uint64_t durasim_handle_access(std::uint64_t number) {
    durasim::object_runtime.handle_access(number);
    return durasim::planted(durasim::Fault::registers_not_preserved);
}
#endif

#endif
