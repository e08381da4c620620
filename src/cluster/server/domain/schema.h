// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_SCHEMA_H_
#define PERSEUS_SERVER_DOMAIN_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/tree_reader.h"

// What JSON objects of the API look like, as constants beside their readers and writers.
// api/openapi.cc makes the document of them.
namespace perseus::server {

enum class MemberKind : std::uint8_t {
  kInteger,
  kNumber,
  kText,
  kBoolean,
  kChoice,  // One of some words.
  kObject,  // Of a schema; where none is named, any.
  kArray,   // Of anything.
};

enum class Presence : std::uint8_t {
  kAlways,
  kNullable,   // Always there, null where there is none.
  kSometimes,  // Missing where there is none.
  kOptional,   // Missing or null.
};

// One member of an object. Integer("rank").Sometimes().Says("Whose.") makes one.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which one reads them.
struct Member {
  std::string_view name;
  MemberKind kind = MemberKind::kText;
  std::string_view of = {};  // kChoice: words between spaces; kObject: the name of a schema.
  std::span<const std::string_view> words = {};  // kChoice: or these.
  std::string_view about = {};
  Presence presence = Presence::kAlways;
  NumberRange range = {};
  std::size_t most_bytes = 0;  // Of a text; 0: not said.
  bool is_list = false;
  std::size_t most_elements = 0;  // Likewise.

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
  std::string_view base = {};  // A schema whose members it has besides; those here replace them.
  bool is_closed = false;      // Other members are refused.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_SCHEMA_H_
