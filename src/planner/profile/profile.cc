// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/profile.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include "common/file.h"
#include "common/located_error.h"
#include "common/numbers.h"
#include "profile/assemble.h"
#include "profile/error_sources.h"
#include "profile/rows.h"
#include "profile/sha256.h"

namespace perseus {
inline namespace v0 {
namespace {

using profile::AssembleProfile;
using profile::ReadRows;

constexpr std::size_t kMaxProfileBytes = std::size_t{256} << 20;

// The text of the first comment above the header that says that the profile is
// a model's; its first word is MODELLED.
std::string ModelledComment(std::string_view text) {
  constexpr std::string_view kWord = "MODELLED";
  constexpr std::size_t kLongest = 300;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (!line.starts_with('#')) break;
    line = Trimmed(line.substr(1));
    if (!line.starts_with(kWord)) continue;
    const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
    const bool can_be_shown =
        line.size() <= kLongest && std::all_of(line.begin(), line.end(), is_printable);
    return std::string(can_be_shown ? line : kWord);
  }
  return "";
}

Parsed<Profile> Parse(std::string_view text, const ProfileOptions& options) {
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
  auto errors = profile::ReadErrorSources(text, *rows);
  if (!errors) return tl::unexpected(std::move(errors.error()));
  Parsed<Profile> profile = AssembleProfile(text, std::move(*rows), options.baseline);
  if (profile) profile->errors = *std::move(errors);
  if (profile) profile->modelled = ModelledComment(text);
  return profile;
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

const UnlockedCost* Profile::FindUnlocked(int stage, ComputationType type) const {
  const auto cost = std::find_if(unlocked.begin(), unlocked.end(), [&](const UnlockedCost& each) {
    return each.stage == stage && each.type == type;
  });
  return cost == unlocked.end() ? nullptr : &*cost;
}

Result<Profile> ReadProfile(const std::string& path, const ProfileOptions& options) {
  const auto text = ReadWholeFileOrPipe(path, kMaxProfileBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseProfile(*text, path, options);
}

Result<Profile> ParseProfile(std::string_view text, const std::string& name,
                             const ProfileOptions& options) {
  auto profile = Parse(text, options);
  if (!profile) {
    const TextPosition position = PositionOf(text, profile.error().offset);
    return InvalidAt(name, position.line, position.column, profile.error().message);
  }
  profile->source = name;
  for (Note& note : profile->notes) note.source = name;
  if (auto good = RefuseNotes(profile->notes, options.strict); !good) {
    return tl::unexpected(good.error());
  }
  profile->sha256 = Sha256Hex(text);
  return std::move(*profile);
}

}  // namespace v0
}  // namespace perseus
