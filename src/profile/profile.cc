// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/profile.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include "perseus/file.h"
#include "profile/assemble.h"
#include "profile/rows.h"

namespace perseus {
namespace {

using profile::AssembleProfile;
using profile::ReadRows;

constexpr std::size_t kMaxProfileBytes = std::size_t{256} << 20;

Parsed<Profile> Parse(std::string_view text) {
  if (text.size() > kMaxProfileBytes) {
    return ProblemAt(0, "the profile is larger than 256 MiB; is it the right file?");
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return ProblemAt(0, "the profile is in UTF-16; save it as UTF-8");
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return ProblemAt(nul, "found a NUL byte, so this is a binary file; expected a CSV text");
  }
  auto rows = ReadRows(text);
  if (!rows) return tl::unexpected(std::move(rows.error()));
  return AssembleProfile(text, std::move(*rows));
}

}  // namespace

const OptionTable* Profile::Find(int stage, ComputationType type) const {
  const auto table =
      std::lower_bound(tables.begin(), tables.end(), std::tuple(stage, type),
                       [](const OptionTable& a, const std::tuple<int, ComputationType>& key) {
                         return std::tuple(a.stage, a.type) < key;
                       });
  if (table == tables.end() || table->stage != stage || table->type != type) return nullptr;
  return &*table;
}

Result<Profile> ReadProfile(const std::string& path) {
  const auto text = ReadWholeFile(path, kMaxProfileBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseProfile(*text, path);
}

Result<Profile> ParseProfile(std::string_view text, const std::string& name) {
  auto profile = Parse(text);
  if (!profile) {
    const TextPosition position = PositionOf(text, profile.error().offset);
    return InvalidInput(
        fmt::format("{}:{}:{}: {}", name, position.line, position.column, profile.error().message));
  }
  profile->source = name;
  profile->sha256 = Sha256Hex(text);
  return std::move(*profile);
}

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    return "";
  }
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
}

}  // namespace perseus
