// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_SUPPORT_REDACTION_H_
#define PERSEUS_CLI_SUPPORT_REDACTION_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::cli {

// Stands in the place of a secret.
inline constexpr std::string_view kRemoved = "[removed]";

// Whether a variable, member or option of this name holds a secret: "HF_TOKEN", "api-key". Not
// those that name a file: "--token-file".
bool IsSecretName(std::string_view name);

// Removes secrets from texts that leave the site:
//   - the secrets that it was told;
//   - values of secret names: "password=x", "\"token\": \"x\"", "--password x",
//     "Authorization: ...", "Bearer x";
//   - passwords in addresses ("//user:x@host"), in lines of ~/.pgpass and of token files;
//   - blocks of PEM;
//   - what looks like a token wherever it stands: long random letters, and known beginnings.
// JSON stays JSON. Prefers to remove too much.
class Redactor {
 public:
  // Shorter ones than this would be found everywhere.
  static constexpr std::size_t kLeastSecret = 6;

  void AddSecret(const std::string& secret);

  std::string Redact(std::string_view text);
  // How many were removed so far.
  long long removed() const { return removed_; }

 private:
  std::string WithoutKnown(std::string text);
  std::string WithoutPem(std::string_view text);
  std::string WithoutPasswords(std::string_view text);
  std::string WithoutLines(std::string_view text);
  std::string WithoutValues(std::string_view text);
  std::string WithoutRandom(std::string_view text);
  void Remove(std::string* out);

  std::vector<std::string> secrets_;
  long long removed_ = 0;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_SUPPORT_REDACTION_H_
