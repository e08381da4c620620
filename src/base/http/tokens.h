// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_TOKENS_H_
#define PERSEUS_HTTP_TOKENS_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "perseus/result.h"

namespace perseus::http {

// The tokens of a server and what they allow. Keeps only the SHA-256 of tokens. Immutable, so
// thread-safe.
class TokenSet {
 public:
  struct Holder {
    Role role = Role::kNone;
    std::string name;
    TokenBinding binding;
  };

  // One token a line: "ROLE TOKEN NAME [key=PREFIX]... [job=ID]...", separated by spaces or tabs;
  // empty lines and those that begin with '#' are skipped. With key= or job= the token is bound
  // to jobs whose client key begins with PREFIX, and to those of these ids. ROLE is read, train or
  // operate; TOKEN 16 to 256 characters of A-Z a-z 0-9 - . _ ~ + / and '=' (RFC 6750); NAME
  // letters, digits and - . _ @. `source` begins errors ("tokens.txt:3: ..."), which never show a
  // token.
  static Result<TokenSet> Parse(std::string_view text, const std::string& source);
  static Result<TokenSet> Load(const std::string& path);

  // Takes the same time for every token, so that timing does not reveal parts of valid ones.
  std::optional<Holder> Find(std::string_view token) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    Digest digest{};
    Holder holder;
  };
  static Digest DigestOf(std::string_view token);
  std::vector<Entry> entries_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_TOKENS_H_
