// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/tokens.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/nearest_name.h"
#include "http/secret_file.h"

namespace perseus::http {
namespace {

constexpr std::size_t kMaxTokenFileBytes = 1 << 20;
constexpr std::size_t kMinTokenBytes = 16;
constexpr std::size_t kMaxTokenBytes = 256;
constexpr std::size_t kMaxTokens = 1000;
constexpr std::size_t kMaxBindingBytes = 256;

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool OnlyWith(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return IsAlphanumeric(c) || others.find(c) != std::string_view::npos;
  });
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t size = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, size));
    line.remove_prefix(size);
  }
}

std::optional<Role> RoleOf(std::string_view name) {
  for (const Role role : {Role::kRead, Role::kTrain, Role::kOperate}) {
    if (name == RoleName(role)) return role;
  }
  return std::nullopt;
}

// Reads one of the words after the name. False: it is none.
bool ReadBinding(std::string_view word, TokenBinding* binding) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view value = word.substr(equals + 1);
  if (value.empty() || value.size() > kMaxBindingBytes) return false;
  const std::string_view kind = word.substr(0, equals);
  if (kind == "key") binding->key_prefixes.emplace_back(value);
  if (kind == "job") binding->jobs.emplace_back(value);
  return kind == "key" || kind == "job";
}

}  // namespace

TokenSet::Digest TokenSet::DigestOf(std::string_view token) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

Result<TokenSet> TokenSet::Parse(std::string_view text, const std::string& source) {
  TokenSet tokens;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = Words(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
    if (words.empty() || words[0].front() == '#') continue;
    const auto problem = [&](const std::string& what) {
      return InvalidInput(fmt::format("{}:{}: {}", source, number, what));
    };
    if (words.size() < 3) {
      return problem(fmt::format("a line has to be \"ROLE TOKEN NAME\", but this has {} words.",
                                 words.size()));
    }
    const std::optional<Role> role = RoleOf(words[0]);
    if (!role) {
      return problem(
          fmt::format("the role has to be read, train or operate, not {}.", Shown(words[0])));
    }
    const std::string_view token = words[1];
    if (token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes ||
        !OnlyWith(token, "-._~+/=")) {
      return problem(fmt::format(
          "a token has to have {} to {} characters of A-Z a-z 0-9 - . _ ~ + / =, but this has {} "
          "or others; make one with: openssl rand -hex 24.",
          kMinTokenBytes, kMaxTokenBytes, token.size()));
    }
    if (words[2].size() > 64 || !OnlyWith(words[2], "-._@")) {
      return problem(
          "a name has to have up to 64 letters, digits and - . _ @ (it is written to the log).");
    }
    TokenBinding binding;
    for (std::size_t i = 3; i < words.size(); ++i) {
      if (ReadBinding(words[i], &binding)) continue;
      return problem(fmt::format(
          "behind the name may be key=PREFIX and job=ID, which bind the token to jobs; word {} is "
          "neither.",
          i + 1));
    }
    const Digest digest = DigestOf(token);
    for (const Entry& other : tokens.entries_) {
      if (other.digest == digest) {
        return problem(fmt::format("this token is {}'s already; each needs its own.",
                                   Shown(other.holder.name)));
      }
    }
    if (tokens.entries_.size() == kMaxTokens) {
      return problem(fmt::format("there are more than {} tokens.", kMaxTokens));
    }
    tokens.entries_.push_back(
        Entry{digest, Holder{*role, std::string(words[2]), std::move(binding)}});
  }
  if (tokens.entries_.empty()) {
    return InvalidInput(
        fmt::format("{} holds no token; write one line \"operate TOKEN NAME\", with a token from: "
                    "openssl rand -hex 24.",
                    source));
  }
  return tokens;
}

Result<TokenSet> TokenSet::Load(const std::string& path) {
  const Result<std::string> text = ReadSecretFile(path, "The token file", kMaxTokenFileBytes);
  if (!text) return tl::unexpected(text.error());
  return Parse(*text, path);
}

std::optional<TokenSet::Holder> TokenSet::Find(std::string_view token) const {
  const Digest digest = DigestOf(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  return found->holder;
}

}  // namespace perseus::http
