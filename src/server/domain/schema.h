// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_SCHEMA_H_
#define PERSEUS_SERVER_DOMAIN_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/tree_reader.h"

// Schemas of the API's JSON objects. They are constants that stand beside the code that reads and
// writes the objects. api/openapi.cc makes the OpenAPI document from them.
namespace perseus::server {

enum class MemberKind : std::uint8_t {
  kInteger,
  kNumber,
  kText,
  kBoolean,
  kChoice,  // One of a set of words.
  kObject,  // An object of the named schema, or any object if none is named.
  kArray,   // An array of anything.
};

enum class Presence : std::uint8_t {
  kAlways,
  kNullable,   // Always present; null if there is no value.
  kSometimes,  // Missing if there is no value.
  kOptional,   // Missing or null if there is no value.
};

// One member of an object. Example: Integer("rank").Sometimes().Says("The rank that measured.").
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which one reads them.
struct Member {
  std::string_view name;
  MemberKind kind = MemberKind::kText;
  std::string_view of = {};  // kChoice: words between spaces; kObject: the name of a schema.
  std::span<const std::string_view> words = {};  // kChoice: the words, if `of` is empty.
  std::string_view about = {};
  Presence presence = Presence::kAlways;
  NumberRange range = {};
  std::size_t most_bytes = 0;  // Of a text. 0: the schema gives no limit.
  bool is_list = false;
  std::size_t most_elements = 0;  // Of a list. 0: the schema gives no limit.

  constexpr Member Nullable() const { return With(Presence::kNullable); }
  constexpr Member Sometimes() const { return With(Presence::kSometimes); }
  constexpr Member Optional() const { return With(Presence::kOptional); }
  constexpr Member Says(std::string_view text) const {
    Member changed = *this;
    changed.about = text;
    return changed;
  }
  constexpr Member In(NumberRange bounds) const {
    Member changed = *this;
    changed.range = bounds;
    return changed;
  }
  constexpr Member Most(std::size_t bytes) const {
    Member changed = *this;
    changed.most_bytes = bytes;
    return changed;
  }
  constexpr Member List(std::size_t most = 0) const {
    Member changed = *this;
    changed.is_list = true;
    changed.most_elements = most;
    return changed;
  }

 private:
  constexpr Member With(Presence when) const {
    Member changed = *this;
    changed.presence = when;
    return changed;
  }
};

constexpr Member Integer(std::string_view name) { return {name, MemberKind::kInteger}; }
constexpr Member Number(std::string_view name) { return {name, MemberKind::kNumber}; }
constexpr Member Text(std::string_view name) { return {name, MemberKind::kText}; }
constexpr Member Boolean(std::string_view name) { return {name, MemberKind::kBoolean}; }
constexpr Member Array(std::string_view name) { return {name, MemberKind::kArray}; }
// `words`: separated by spaces.
constexpr Member Choice(std::string_view name, std::string_view words) {
  return {name, MemberKind::kChoice, words};
}
constexpr Member Choice(std::string_view name, std::span<const std::string_view> words) {
  return {name, MemberKind::kChoice, {}, words};
}
constexpr Member Object(std::string_view name, std::string_view schema = {}) {
  return {name, MemberKind::kObject, schema};
}

struct ObjectSchema {
  std::string_view name;
  std::span<const Member> members;
  std::string_view about = {};
  std::string_view base = {};  // A schema that this one extends. `members` replace its members.
  bool is_closed = false;      // Readers refuse members that the schema does not name.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_SCHEMA_H_
