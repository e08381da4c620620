// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_WIRE_MESSAGE_H_
#define PERSEUS_WIRE_MESSAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/tree.h"
#include "perseus/result.h"

// One table a message: name, member, limits and meaning of each field stand once. The writer, the
// reader and the schema are loops over the table:
//
//   struct Gpu { std::string uuid; std::optional<double> watts; std::vector<int> clocks; };
//   constexpr Field kGpuFields[] = {
//       Value<&Gpu::uuid>("uuid").Most(64),
//       Value<&Gpu::watts>("power_w").In(kNotNegative).Optional().Says("What it draws."),
//       Value("clock_count", [](const Gpu& gpu) { return gpu.clocks.size(); })};  // Written alone.
//   constexpr Message<Gpu> kGpu = {"Gpu", kGpuFields};
//
//   std::string json = Write(kGpu, gpu);   Read(kGpu, cursor, &gpu);
//
// Tables hold function pointers in place of types, so that a field costs the compiler next to
// nothing.
namespace perseus::wire {

enum class Kind : std::uint8_t {
  kInteger,
  kNumber,
  kText,
  kBoolean,
  kChoice,  // One of a set of words.
  kObject,
  kArray,  // Of anything. In schemas only.
  kJson,   // Text that is JSON already, see RawJson.
};

enum class Presence : std::uint8_t {
  kAlways,
  kNullable,   // Always present; null if there is no value.
  kSometimes,  // Missing if there is no value.
  kOptional,   // Missing or null if there is no value. Written as null.
};

// JSON that is written as it is. Empty: no value.
struct RawJson {
  std::string text;
};

enum class Many : std::uint8_t { kOne, kMaybe, kList, kMap };

// A value in the form that all of its kind share.
struct Scalar {
  std::int64_t integer = 0;  // Also of booleans, and the index of a choice.
  double number = 0;
  std::string_view text = {};
};

// Operations on a C++ type, for the tables.
struct TypeOps {
  using Use = void (*)(void* context, std::string_view key, const void* element);

  Kind kind = Kind::kText;  // Of an element.
  Many many = Many::kOne;
  bool is_wide = false;                                                // An integer of 64 bits.
  Scalar (*get)(const void* element) = nullptr;                        // Null: an object.
  void (*set)(void* element, const Scalar& scalar) = nullptr;          // Null: it is written alone.
  void (*visit)(const void* value, void* context, Use use) = nullptr;  // Null: kOne.
  void* (*add)(void* value) = nullptr;                                 // Null: kOne, or no reader.
  void (*drop)(void* value) = nullptr;  // Takes back what add() gave.
};

namespace internal {

template <typename T>
inline constexpr char kTag = 0;

template <typename E>
constexpr Kind KindOf() {
  if constexpr (std::is_same_v<E, bool>) {
    return Kind::kBoolean;
  } else if constexpr (std::is_enum_v<E>) {
    return Kind::kChoice;
  } else if constexpr (std::is_integral_v<E>) {
    return Kind::kInteger;
  } else if constexpr (std::is_floating_point_v<E>) {
    return Kind::kNumber;
  } else if constexpr (std::is_same_v<E, RawJson>) {
    return Kind::kJson;
  } else if constexpr (std::is_convertible_v<const E&, std::string_view>) {
    return Kind::kText;
  } else {
    return Kind::kObject;
  }
}

template <typename E>
Scalar Get(const void* element) {
  const E& value = *static_cast<const E*>(element);
  constexpr Kind kKind = KindOf<E>();
  if constexpr (kKind == Kind::kNumber) {
    return {.number = value};
  } else if constexpr (kKind == Kind::kText) {
    return {.text = value};
  } else if constexpr (kKind == Kind::kJson) {
    return {.text = value.text};
  } else {
    return {.integer = static_cast<std::int64_t>(value)};
  }
}

template <typename E>
void Set(void* element, const Scalar& scalar) {
  E& value = *static_cast<E*>(element);
  constexpr Kind kKind = KindOf<E>();
  if constexpr (kKind == Kind::kNumber) {
    value = scalar.number;
  } else if constexpr (kKind == Kind::kText) {
    value = E(scalar.text);
  } else {
    value = static_cast<E>(scalar.integer);
  }
}

// Of one element.
template <typename E>
constexpr TypeOps ElementOps() {
  constexpr Kind kKind = KindOf<E>();
  TypeOps ops = {.kind = kKind, .is_wide = sizeof(E) == sizeof(std::int64_t)};
  if constexpr (kKind != Kind::kObject) ops.get = Get<E>;
  if constexpr (std::is_arithmetic_v<E> || std::is_enum_v<E> || std::is_same_v<E, std::string>) {
    ops.set = Set<E>;
  }
  return ops;
}

inline std::string KeyText(std::string_view key) { return std::string(key); }
inline std::string KeyText(std::int64_t key) { return std::to_string(key); }

// None or one: optional, pointer, shared_ptr.
template <typename T>
void VisitMaybe(const void* value, void* context, TypeOps::Use use) {
  const T& maybe = *static_cast<const T*>(value);
  if (maybe) use(context, {}, std::addressof(*maybe));
}
template <typename T>
void VisitList(const void* value, void* context, TypeOps::Use use) {
  for (const auto& element : *static_cast<const T*>(value)) use(context, {}, &element);
}
template <typename T>
void VisitMap(const void* value, void* context, TypeOps::Use use) {
  for (const auto& [key, element] : *static_cast<const T*>(value)) {
    use(context, KeyText(key), &element);
  }
}

template <typename T>
struct OpsOf {
  static constexpr TypeOps kOps = ElementOps<T>();
};
template <typename E, typename T>
constexpr TypeOps Container(Many many, void (*visit)(const void*, void*, TypeOps::Use)) {
  TypeOps ops = ElementOps<std::remove_const_t<E>>();
  ops.many = many;
  ops.visit = visit;
  return ops;
}
template <typename E>
struct OpsOf<std::optional<E>> {
  static constexpr TypeOps kOps = [] {
    TypeOps ops = Container<E, std::optional<E>>(Many::kMaybe, VisitMaybe<std::optional<E>>);
    ops.add = [](void* value) -> void* {
      return &static_cast<std::optional<E>*>(value)->emplace();
    };
    return ops;
  }();
};
template <typename E>
struct OpsOf<std::shared_ptr<E>> {
  static constexpr TypeOps kOps =
      Container<E, std::shared_ptr<E>>(Many::kMaybe, VisitMaybe<std::shared_ptr<E>>);
};
template <typename E>
requires(!std::is_same_v<std::remove_const_t<E>, char>) struct OpsOf<E*> {
  static constexpr TypeOps kOps = Container<E, E*>(Many::kMaybe, VisitMaybe<E*>);
};
template <typename E>
struct OpsOf<std::vector<E>> {
  static constexpr TypeOps kOps = [] {
    TypeOps ops = Container<E, std::vector<E>>(Many::kList, VisitList<std::vector<E>>);
    ops.add = [](void* value) -> void* {
      return &static_cast<std::vector<E>*>(value)->emplace_back();
    };
    ops.drop = [](void* value) { static_cast<std::vector<E>*>(value)->pop_back(); };
    return ops;
  }();
};
template <typename E>
struct OpsOf<std::deque<E>> {
  static constexpr TypeOps kOps =
      Container<E, std::deque<E>>(Many::kList, VisitList<std::deque<E>>);
};
template <typename E, std::size_t kSize>
struct OpsOf<std::array<E, kSize>> {
  static constexpr TypeOps kOps =
      Container<E, std::array<E, kSize>>(Many::kList, VisitList<std::array<E, kSize>>);
};
template <typename E>
struct OpsOf<std::span<E>> {
  static constexpr TypeOps kOps = Container<E, std::span<E>>(Many::kList, VisitList<std::span<E>>);
};
template <typename K, typename E, typename C>
struct OpsOf<std::map<K, E, C>> {
  static constexpr TypeOps kOps =
      Container<E, std::map<K, E, C>>(Many::kMap, VisitMap<std::map<K, E, C>>);
};

// The class of a pointer to member, or the argument of a function.
template <typename T, typename C>
C ObjectOf(T C::*);
template <typename T, typename C>
C ObjectOf(T (*)(const C&));
template <typename L, typename T, typename C>
C ArgumentOf(T (L::*)(const C&) const);

template <auto kFirst, auto... kRest>
decltype(auto) Follow(const auto& object) {
  if constexpr (sizeof...(kRest) == 0) {
    return std::invoke(kFirst, object);
  } else {
    return Follow<kRest...>(std::invoke(kFirst, object));
  }
}

using UseValue = void (*)(void* context, const void* value);

template <typename C, auto... kPath>
void WithMember(const void* object, void* context, UseValue use) {
  decltype(auto) value = Follow<kPath...>(*static_cast<const C*>(object));
  use(context, std::addressof(value));
}
template <typename C, typename L>
void WithResult(const void* object, void* context, UseValue use) {
  decltype(auto) value = L{}(*static_cast<const C*>(object));
  use(context, std::addressof(value));
}
template <typename C, auto... kPath>
void* Into(void* object) {
  return &(*static_cast<C*>(object).*....*kPath);
}

}  // namespace internal

struct AnyMessage;

// One field of a message. Example: Value<&Rank::gpu>("gpu").Most(64).Optional().Says("Its UUID.").
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which one reads them.
struct Field {
  std::string_view name;  // Empty: the fields of `message` stand in this one's place.
  Kind kind = Kind::kText;
  std::string_view of = {};                      // kChoice: words between spaces.
  std::span<const std::string_view> words = {};  // kChoice: the words, if `of` is empty.
  const AnyMessage* message = nullptr;           // kObject: its table.
  std::string_view about = {};
  Presence presence = Presence::kAlways;
  NumberRange range = {};
  std::size_t most_bytes = 0;  // Of a text. 0: the schema gives no limit.
  bool is_list = false;
  std::size_t most_elements = 0;       // Of a list. 0: the schema gives no limit.
  std::string_view noun = "elements";  // What the elements of a list are.
  bool is_nothing_if_empty = false;    // 0, "", false and [] are no value.
  bool is_left_out = false;            // Missing rather than null, also where it is optional.
  bool is_picked = false;              // The element of this name of a map.
  bool is_lenient = false;
  bool replaces = false;          // Stands in the place of an inlined field of this name.
  const void* owner = nullptr;    // Tells the type of the object apart.
  const TypeOps* type = nullptr;  // Null: the field is only described.
  void (*with)(const void* object, void* context, internal::UseValue use) = nullptr;
  void* (*into)(void* object) = nullptr;  // Null: the field is not read.
  // In place of the usual reader, and of the usual writer.
  void (*read)(const Field& field, const TreeCursor& at, void* member) = nullptr;
  void (*write)(const Field& field, const void* member, std::string* out) = nullptr;

  constexpr Field Nullable() const {
    Field changed = *this;
    changed.presence = Presence::kNullable;
    return changed;
  }
  constexpr Field Sometimes() const {
    Field changed = *this;
    changed.presence = Presence::kSometimes;
    return changed;
  }
  constexpr Field Optional() const {
    Field changed = *this;
    changed.presence = Presence::kOptional;
    return changed;
  }
  constexpr Field Says(std::string_view text) const {
    Field changed = *this;
    changed.about = text;
    return changed;
  }
  constexpr Field In(NumberRange bounds) const {
    Field changed = *this;
    changed.range = bounds;
    return changed;
  }
  constexpr Field Most(std::size_t bytes) const {
    Field changed = *this;
    changed.most_bytes = bytes;
    return changed;
  }
  // Lists of C++ are known to be lists.
  constexpr Field List(std::size_t most = 0, std::string_view elements = "elements") const {
    Field changed = *this;
    changed.is_list = true;
    changed.most_elements = most;
    changed.noun = elements;
    return changed;
  }
  // As what the schema shows it.
  constexpr Field As(Kind shown) const {
    Field changed = *this;
    changed.kind = shown;
    return changed;
  }
  // 0, "", false and [] are no value, and where there is none, the field is missing.
  constexpr Field LeftOut() const {
    Field changed = *this;
    changed.is_nothing_if_empty = true;
    changed.is_left_out = true;
    return changed;
  }
  constexpr Field UnlessEmpty() const {
    Field changed = *this;
    changed.is_nothing_if_empty = true;
    return changed;
  }
  // The element of this field's name of a map; its reader is the caller's, see ReadBy().
  constexpr Field Picked() const {
    Field changed = *this;
    changed.is_picked = true;
    changed.kind = type->kind;
    return changed;
  }
  // A word that is not known is no value. Of a list of objects: such elements are left out.
  constexpr Field Lenient() const {
    Field changed = *this;
    changed.is_lenient = true;
    return changed;
  }
  constexpr Field Replacing() const {
    Field changed = *this;
    changed.replaces = true;
    return changed;
  }
  constexpr Field ReadBy(void (*reader)(const Field& field, const TreeCursor& at,
                                        void* member)) const {
    Field changed = *this;
    changed.read = reader;
    return changed;
  }
  constexpr Field WrittenBy(void (*writer)(const Field& field, const void* member,
                                           std::string* out)) const {
    Field changed = *this;
    changed.write = writer;
    return changed;
  }
};

// The table of a message.
struct AnyMessage {
  std::string_view name;
  std::span<const Field> fields;
  std::string_view about = {};
  bool is_closed = false;  // Readers refuse fields that the table does not name.
  // Checks an object after its fields were read.
  void (*check)(const TreeCursor& at, void* object) = nullptr;
};

// The table of messages of type T.
template <typename T>
struct Message : AnyMessage {
  template <std::size_t kCount>
  consteval Message(std::string_view name, const Field (&fields)[kCount],
                    std::string_view about = {})
      : AnyMessage{name, fields, about} {
    for (const Field& field : fields) {
      const bool is_described = field.owner == nullptr;
      if (!is_described && field.owner != &internal::kTag<T>)
        throw "a field of another type's object";
    }
  }
  consteval Message Closed() const {
    Message changed = *this;
    changed.is_closed = true;
    return changed;
  }
  template <void (*kCheck)(const TreeCursor& at, T* object)>
  consteval Message Checked() const {
    Message changed = *this;
    changed.check = [](const TreeCursor& at, void* object) { kCheck(at, static_cast<T*>(object)); };
    return changed;
  }
};

namespace internal {

template <typename C, typename V>
constexpr Field Typed(std::string_view name) {
  constexpr const TypeOps& kOps = OpsOf<std::remove_cvref_t<V>>::kOps;
  Field field = {.name = name, .kind = kOps.kind};
  if (kOps.kind == Kind::kJson || kOps.many == Many::kMap) field.kind = Kind::kObject;
  field.is_list = kOps.many == Many::kList;
  field.owner = &kTag<C>;
  field.type = &kOps;
  return field;
}

template <auto kFirst, auto... kRest>
constexpr Field OfMember(std::string_view name) {
  using C = decltype(ObjectOf(kFirst));
  Field field = Typed<C, decltype(Follow<kFirst, kRest...>(std::declval<const C&>()))>(name);
  field.with = WithMember<C, kFirst, kRest...>;
  if constexpr (std::is_member_object_pointer_v<decltype(kFirst)> &&
                (std::is_member_object_pointer_v<decltype(kRest)> && ...)) {
    field.into = Into<C, kFirst, kRest...>;
  }
  return field;
}
template <typename L>
constexpr Field OfResult(std::string_view name, L /*function*/) {
  using C = decltype(ArgumentOf(&L::operator()));
  Field field = Typed<C, decltype(L{}(std::declval<const C&>()))>(name);
  field.with = WithResult<C, L>;
  return field;
}
constexpr Field WithWords(Field field, std::span<const std::string_view> words) {
  field.kind = Kind::kChoice;
  field.words = words;
  return field;
}
constexpr Field WithTable(Field field, const AnyMessage& message) {
  field.kind = Kind::kObject;
  field.message = &message;
  return field;
}

}  // namespace internal

// A number, text, boolean or RawJson; also none or one, a list or a map of these. The first form
// names a member, or a member of a member; the second computes what is written.
template <auto kFirst, auto... kRest>
constexpr Field Value(std::string_view name) {
  return internal::OfMember<kFirst, kRest...>(name);
}
template <typename L>
constexpr Field Value(std::string_view name, L function) {
  return internal::OfResult(name, function);
}
// An enumeration that counts from 0, or a text: one of these words.
template <auto kFirst, auto... kRest>
constexpr Field Choice(std::string_view name, std::span<const std::string_view> words) {
  return internal::WithWords(internal::OfMember<kFirst, kRest...>(name), words);
}
template <typename L>
constexpr Field Choice(std::string_view name, std::span<const std::string_view> words, L function) {
  return internal::WithWords(internal::OfResult(name, function), words);
}
// An object with a table of its own; also none or one, a list or a map of these.
template <auto kFirst, auto... kRest>
constexpr Field Object(std::string_view name, const AnyMessage& message) {
  return internal::WithTable(internal::OfMember<kFirst, kRest...>(name), message);
}
template <typename L>
constexpr Field Object(std::string_view name, const AnyMessage& message, L function) {
  return internal::WithTable(internal::OfResult(name, function), message);
}
// The fields of a part stand in this object.
template <auto kFirst, auto... kRest>
constexpr Field Inline(const AnyMessage& message) {
  return Object<kFirst, kRest...>("", message);
}

// The fields of another table of the same type stand in this one's place.
template <typename T>
constexpr Field Base(const Message<T>& message) {
  Field field = internal::WithTable(internal::Typed<T, T>(""), message);
  field.with = [](const void* object, void* context, internal::UseValue use) {
    use(context, object);
  };
  field.into = [](void* object) { return object; };
  return field;
}

// Fields that are only described.
constexpr Field Integer(std::string_view name) { return {name, Kind::kInteger}; }
constexpr Field Number(std::string_view name) { return {name, Kind::kNumber}; }
constexpr Field Text(std::string_view name) { return {name, Kind::kText}; }
constexpr Field Boolean(std::string_view name) { return {name, Kind::kBoolean}; }
constexpr Field Array(std::string_view name) { return {name, Kind::kArray}; }
// `words`: separated by spaces.
constexpr Field Choice(std::string_view name, std::string_view words) {
  return {name, Kind::kChoice, words};
}
constexpr Field Choice(std::string_view name, std::span<const std::string_view> words) {
  return {name, Kind::kChoice, {}, words};
}
constexpr Field Object(std::string_view name) { return {name, Kind::kObject}; }
constexpr Field Object(std::string_view name, const AnyMessage& message) {
  return internal::WithTable({name}, message);
}
constexpr Field Base(const AnyMessage& message) { return Object("", message); }

// As FormatCompact() writes JSON: on one line, without spaces.
void AppendNumber(double number, std::string* out);
void AppendText(std::string_view text, std::string* out);
void AppendObject(const AnyMessage& message, const void* object, std::string* out);
// Reads what the table names, and ignores other fields unless the message is closed. Errors go to
// the cursor's reader. False: a word of a lenient field was not known.
bool ReadObject(const AnyMessage& message, const TreeCursor& at, void* object);
Result<void> ParseObject(const AnyMessage& message, std::string_view json, const std::string& name,
                         void* object);

template <typename T>
void Append(const Message<T>& message, const T& object, std::string* out) {
  AppendObject(message, &object, out);
}
template <typename T>
std::string Write(const Message<T>& message, const T& object) {
  std::string out;
  AppendObject(message, &object, &out);
  return out;
}
template <typename T>
bool Read(const Message<T>& message, const TreeCursor& at, T* object) {
  return ReadObject(message, at, object);
}
// `name` stands for the text in errors: "the server's answer".
template <typename T>
Result<T> Parse(const Message<T>& message, std::string_view json, const std::string& name) {
  T object = {};
  Result<void> parsed = ParseObject(message, json, name, &object);
  if (!parsed) return tl::unexpected(std::move(parsed).error());
  return object;
}

// Numbers above that of any rank or clock, and the largest that are exact as a double.
inline constexpr int kMostNumber = 2'000'000'000;
inline constexpr double kMostWhole = 9007199254740992.0;  // 2^53
// Bytes of a text that gives no limit.
inline constexpr std::size_t kMostTextBytes = 1024;

// A whole number that is exact as a double.
std::int64_t ReadWhole(const TreeCursor& at, NumberRange range = kAnyNumber);
// A text of at most `most` bytes without null characters.
std::string ReadText(const TreeCursor& at, std::size_t most = kMostTextBytes);
// The member of an object, unless it is missing or null.
std::optional<TreeCursor> FindSet(const TreeCursor& object, std::string_view key);

}  // namespace perseus::wire

#endif  // PERSEUS_WIRE_MESSAGE_H_
