// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/nearest_name.h"
#include "common/printable.h"
#include "http/message.h"

namespace perseus::http {
namespace {

constexpr std::size_t kMaxQueryParameters = 64;

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

// Percent-decodes one part of a target; `plus` is what a '+' stands for.
Result<std::string> Decode(std::string_view text, char plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += plus;
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return InvalidInput(
            fmt::format("{} has a '%' without two hexadecimal digits after it; write a percent "
                        "sign as %25.",
                        Shown(text)));
      }
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  if (std::any_of(decoded.begin(), decoded.end(), IsControl)) {
    return InvalidInput(
        fmt::format("{} holds a control character, which no address may.", Shown(text)));
  }
  if (ValidUtf8Prefix(decoded) != decoded.size()) {
    return InvalidInput(fmt::format("{} is no UTF-8 once it is decoded.", Shown(text)));
  }
  return decoded;
}

Result<std::string> DecodeSegment(std::string_view text) {
  Result<std::string> segment = Decode(text, '+');
  if (!segment) return segment;
  if (*segment == "." || *segment == "..") {
    return InvalidInput("The path holds '.' or '..'; write the whole path.");
  }
  if (segment->find_first_of("/\\") != std::string::npos) {
    return InvalidInput(
        fmt::format("{} holds a slash or backslash within one segment of the path.", Shown(text)));
  }
  return segment;
}

Result<void> ParseQuery(std::string_view text, std::map<std::string, std::string>* query) {
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    Result<std::string> name = Decode(pair.substr(0, equals), ' ');
    if (!name) return tl::unexpected(name.error());
    Result<std::string> value = Decode(pair.substr(std::min(equals + 1, pair.size())), ' ');
    if (!value) return tl::unexpected(value.error());
    if (name->empty()) {
      return InvalidInput(fmt::format("The query has a value without a name: {}.", Shown(pair)));
    }
    if (query->size() == kMaxQueryParameters) {
      return InvalidInput(
          fmt::format("The query has more than {} parameters.", kMaxQueryParameters));
    }
    const auto [place, is_new] = query->emplace(*std::move(name), *std::move(value));
    if (!is_new) {
      return InvalidInput(fmt::format("The query gives {} twice.", Shown(place->first)));
    }
  }
  return {};
}

// Without the "http://host" that a target may begin with.
std::optional<std::string_view> WithoutAuthority(std::string_view text) {
  if (text.starts_with('/')) return text;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!SameIgnoringCase(text.substr(0, scheme.size()), scheme)) continue;
    text.remove_prefix(scheme.size());
    const std::size_t end = std::min(text.find_first_of("/?"), text.size());
    if (end == 0) return std::nullopt;
    text.remove_prefix(end);
    return text.empty() ? "/" : text;
  }
  return std::nullopt;
}

}  // namespace

Result<Target> ParseTarget(std::string_view text) {
  if (text.size() > kMaxTargetBytes) {
    return InvalidInput(fmt::format("The address has {} bytes; at most {} are read.", text.size(),
                                    kMaxTargetBytes));
  }
  for (const char c : text) {
    if (c <= 0x20 || c == 0x7F || static_cast<unsigned char>(c) > 0x7F || c == '#') {
      return InvalidInput(fmt::format(
          "The address {} holds a character that has to be written as %XX.", Shown(text)));
    }
  }
  const std::optional<std::string_view> local = WithoutAuthority(text);
  if (!local || !local->starts_with('/')) {
    return InvalidInput(fmt::format("The address {} does not begin with '/'.", Shown(text)));
  }
  Target target;
  const std::size_t path_size = std::min(local->find('?'), local->size());
  std::string_view path = local->substr(1, path_size - 1);
  for (;;) {
    const std::size_t size = std::min(path.find('/'), path.size());
    Result<std::string> segment = DecodeSegment(path.substr(0, size));
    if (!segment) return tl::unexpected(segment.error());
    target.segments.push_back(*std::move(segment));
    if (size == path.size()) break;
    path.remove_prefix(size + 1);
  }
  if (path_size < local->size()) {
    Result<void> query = ParseQuery(local->substr(path_size + 1), &target.query);
    if (!query) return tl::unexpected(query.error());
  }
  return target;
}

std::string PathOf(const Target& target) {
  std::string path;
  for (const std::string& segment : target.segments) path.append("/").append(segment);
  return path;
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool unreserved = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                            (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace perseus::http
