// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <variant>

#include "common/json_text.h"
#include "common/tree.h"

namespace perseus::wire {
namespace {

// A value that is being written.
struct Writing {
  const Field& field;
  std::string* out;
  bool wrote = false;
};

std::string_view WordOf(const Field& field, std::int64_t index) {
  if (index >= 0 && index < std::ssize(field.words)) {
    return field.words[static_cast<std::size_t>(index)];
  }
  return "?";
}

bool IsEmpty(const TypeOps& type, const Scalar& scalar) {
  return type.kind == Kind::kText || type.kind == Kind::kJson
             ? scalar.text.empty()
             : scalar.integer == 0 && scalar.number == 0;
}

void AppendElement(const Field& field, const void* element, std::string* out) {
  if (field.type->get == nullptr) return AppendObject(*field.message, element, out);
  const Scalar scalar = field.type->get(element);
  switch (field.type->kind) {
    case Kind::kInteger:
      fmt::format_to(std::back_inserter(*out), "{}", scalar.integer);
      break;
    case Kind::kNumber:
      AppendNumber(scalar.number, out);
      break;
    case Kind::kBoolean:
      *out += scalar.integer != 0 ? "true" : "false";
      break;
    case Kind::kChoice:
      AppendText(WordOf(field, scalar.integer), out);
      break;
    case Kind::kJson:
      *out += scalar.text.empty() ? "null" : scalar.text;
      break;
    case Kind::kText:
    case Kind::kObject:
    case Kind::kArray:
      AppendText(scalar.text, out);
      break;
  }
}

// Writes what the value has. Whether it had any.
bool AppendValue(const Field& field, const void* value, std::string* out) {
  const TypeOps& type = *field.type;
  if (field.write != nullptr) {
    field.write(field, value, out);
    return true;
  }
  if (type.many == Many::kOne) {
    const bool may_be_nothing = field.is_nothing_if_empty && type.get != nullptr;
    if (may_be_nothing && IsEmpty(type, type.get(value))) return false;
    AppendElement(field, value, out);
    return true;
  }
  Writing writing{field, out};
  if (field.is_picked) {
    type.visit(value, &writing, [](void* context, std::string_view key, const void* element) {
      auto& to = *static_cast<Writing*>(context);
      if (key != to.field.name) return;
      to.wrote = true;
      AppendElement(to.field, element, to.out);
    });
    return writing.wrote;
  }
  if (type.many == Many::kList) *out += '[';
  if (type.many == Many::kMap) *out += '{';
  type.visit(value, &writing, [](void* context, std::string_view key, const void* element) {
    auto& to = *static_cast<Writing*>(context);
    if (to.wrote) *to.out += ',';
    to.wrote = true;
    if (to.field.type->many == Many::kMap) {
      AppendText(key, to.out);
      *to.out += ':';
    }
    AppendElement(to.field, element, to.out);
  });
  if (type.many == Many::kList) *out += ']';
  if (type.many == Many::kMap) *out += '}';
  return writing.wrote || (type.many != Many::kMaybe && !field.is_nothing_if_empty);
}

struct Member {
  const Field& field;
  std::string* out;
};

void AppendField(const Field& field, const void* object, std::string* out) {
  Member member{field, out};
  field.with(object, &member, [](void* context, const void* value) {
    const auto& [of, to] = *static_cast<Member*>(context);
    const std::size_t begin = to->size();
    if (to->back() != '{') *to += ',';
    AppendText(of.name, to);
    *to += ':';
    const std::size_t key_end = to->size();
    if (AppendValue(of, value, to)) return;
    to->resize(key_end);
    if (of.presence == Presence::kSometimes || of.is_left_out) {
      to->resize(begin);
    } else {
      *to += "null";
    }
  });
}

// A part of an object whose fields stand in it.
struct Part {
  const Field& field;
  const AnyMessage& outer;
  const void* outer_object;
  std::string* out;
};

void AppendPart(Part part, const void* object);

void AppendPartFields(const Part& part, const void* object) {
  for (const Field& each : part.field.message->fields) {
    const auto other =
        std::find_if(part.outer.fields.begin(), part.outer.fields.end(),
                     [&](const Field& own) { return own.replaces && own.name == each.name; });
    if (other != part.outer.fields.end()) {
      AppendField(*other, part.outer_object, part.out);
    } else if (each.name.empty()) {
      AppendPart({each, part.outer, part.outer_object, part.out}, object);
    } else if (each.with != nullptr) {
      AppendField(each, object, part.out);
    }
  }
}

// `object`: that which holds the part.
void AppendPart(Part part, const void* object) {
  part.field.with(object, &part, [](void* context, const void* value) {
    const Part& of = *static_cast<Part*>(context);
    if (of.field.type->visit == nullptr) return AppendPartFields(of, value);
    of.field.type->visit(value, context, [](void* in, std::string_view, const void* element) {
      AppendPartFields(*static_cast<Part*>(in), element);
    });
  });
}

void AppendFields(const AnyMessage& message, const void* object, std::string* out) {
  for (const Field& field : message.fields) {
    if (field.replaces || field.with == nullptr) continue;
    if (field.name.empty()) {
      AppendPart({field, message, object, out}, object);
    } else {
      AppendField(field, object, out);
    }
  }
}

std::string WordList(std::span<const std::string_view> words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    list += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  return list;
}

int Bound(double bound) {
  return static_cast<int>(std::clamp<double>(bound, -kMostNumber, kMostNumber));
}

// False: a word of a lenient field is not known.
bool ReadElement(const Field& field, const TreeCursor& at, void* element) {
  if (field.type->set == nullptr) return ReadObject(*field.message, at, element);
  Scalar scalar;
  std::string text;
  switch (field.type->kind) {
    case Kind::kInteger:
      scalar.integer = field.type->is_wide
                           ? ReadWhole(at, field.range)
                           : at.Integer(Bound(field.range.least), Bound(field.range.most));
      break;
    case Kind::kNumber:
      scalar.number = at.Number(field.range);
      break;
    case Kind::kBoolean:
      scalar.integer = at.Bool() ? 1 : 0;
      break;
    case Kind::kText:
    case Kind::kChoice: {
      text = ReadText(at, field.most_bytes > 0 ? field.most_bytes : kMostTextBytes);
      scalar.text = text;
      if (field.words.empty()) break;
      const auto found = std::find(field.words.begin(), field.words.end(), text);
      scalar.integer = found - field.words.begin();
      if (found != field.words.end()) break;
      if (!field.is_lenient) at.FailExpected(WordList(field.words));
      return false;
    }
    case Kind::kObject:
    case Kind::kArray:
    case Kind::kJson:
      return true;
  }
  field.type->set(element, scalar);
  return true;
}

bool ReadField(const Field& field, const TreeCursor& at, void* member) {
  const TypeOps& type = *field.type;
  if (field.read != nullptr) {
    field.read(field, at, member);
    return true;
  }
  if (type.many == Many::kOne) return ReadElement(field, at, member);
  if (type.add == nullptr) {  // A table that writes only.
    at.Fail("is not read");
    return false;
  }
  if (type.many == Many::kMaybe) {
    const bool is_known =
        !field.is_lenient || field.words.empty() ||
        std::find(field.words.begin(), field.words.end(), at.String()) != field.words.end();
    return is_known && ReadElement(field, at, type.add(member));
  }
  std::size_t count = at.Size();
  if (field.most_elements > 0 && count > field.most_elements) {
    at.FailExpected(fmt::format("at most {} {}", field.most_elements, field.noun));
    count = field.most_elements;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!ReadElement(field, at.At(i), type.add(member)) && field.is_lenient) type.drop(member);
  }
  return true;
}

}  // namespace

void AppendNumber(double number, std::string* out) {
  // The digits of the one library that writes all other JSON, too.
  *out += nlohmann::ordered_json(number).dump();
}

void AppendText(std::string_view text, std::string* out) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte >= 0x20 && byte < 0x80 && letter != '"' && letter != '\\';
  });
  if (!is_plain) {
    *out += FormatCompact(text);
    return;
  }
  *out += '"';
  *out += text;
  *out += '"';
}

void AppendObject(const AnyMessage& message, const void* object, std::string* out) {
  *out += '{';
  AppendFields(message, object, out);
  *out += '}';
}

bool ReadObject(const AnyMessage& message, const TreeCursor& at, void* object) {
  if (message.is_closed) {
    std::vector<std::string_view> names;
    for (const Field& field : message.fields) names.push_back(field.name);
    at.AllowOnly(names);
  }
  bool are_known = true;
  for (const Field& field : message.fields) {
    if (field.into == nullptr) continue;
    void* const member = field.into(object);
    if (field.name.empty()) {
      are_known &= ReadObject(*field.message, at, member);
    } else if (field.presence == Presence::kAlways) {
      are_known &= ReadField(field, at.Get(field.name), member);
    } else if (const auto found = FindSet(at, field.name)) {
      are_known &= ReadField(field, *found, member);
    }
  }
  if (message.check != nullptr) message.check(at, object);
  return are_known;
}

Result<void> ParseObject(const AnyMessage& message, std::string_view json, const std::string& name,
                         void* object) {
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  ReadObject(message, reader.Root(), object);
  if (reader.failed()) return tl::unexpected(*reader.error());
  return {};
}

std::int64_t ReadWhole(const TreeCursor& at, NumberRange range) {
  range.least = std::max(range.least, -kMostWhole);
  range.most = std::min(range.most, kMostWhole);
  const double value = at.Number(range);
  if (value != std::floor(value)) {
    at.FailExpected("a whole number");
    return 0;
  }
  return static_cast<std::int64_t>(value);
}

std::string ReadText(const TreeCursor& at, std::size_t most) {
  std::string text = at.String();
  if (text.size() > most) at.Fail(fmt::format("longer than {} bytes", most));
  if (text.find('\0') != std::string::npos) at.Fail("holds a null character");
  return text;
}

std::optional<TreeCursor> FindSet(const TreeCursor& object, std::string_view key) {
  const std::optional<TreeCursor> found = object.Find(key);
  if (!found || std::holds_alternative<std::monostate>(found->node().value)) return std::nullopt;
  return found;
}

}  // namespace perseus::wire
