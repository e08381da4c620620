// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/support/redaction.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace perseus::cli {
namespace {

using std::string_view;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsAlphanumeric(char c) { return IsDigit(c) || IsLower(c) || IsUpper(c); }
bool IsNameByte(char c) { return IsAlphanumeric(c) || c == '_' || c == '-'; }
bool IsTokenByte(char c) {
  return IsAlphanumeric(c) || string_view("+/=_~-").find(c) != string_view::npos;
}
bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsSpace(char c) { return IsBlank(c) || c == '\n' || c == '\r'; }
bool IsQuote(char c) { return c == '"' || c == '\''; }

template <typename Is>
std::size_t EndOf(string_view text, std::size_t at, const Is& is) {
  while (at < text.size() && is(text[at])) ++at;
  return at;
}

// Lower letters, _ for -, and without the beginning of an option.
std::string Normal(string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string normal(name);
  for (char& c : normal) {
    if (IsUpper(c)) c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return normal;
}

// Names of which the value is a whole line.
bool IsHeader(const std::string& normal) {
  return normal.ends_with("authorization") || normal.ends_with("cookie");
}

// A key: its value may name the file that holds it.
bool IsKeyName(const std::string& normal) {
  return normal == "key" || normal == "tls_key" || normal == "sslkey";
}

struct Value {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool needs_quotes = false;  // A bare value of JSON.
};

// The text in quotes that begins at `at`, also if the quotes are escaped.
Value Quoted(string_view text, std::size_t at) {
  const bool is_escaped = text[at] == '\\';
  const char quote = text[at + (is_escaped ? 1 : 0)];
  const std::size_t begin = at + (is_escaped ? 2 : 1);
  std::size_t end = begin;
  while (end < text.size() && text[end] != '\n') {
    if (text[end] == '\\' && end + 1 < text.size()) {
      if (is_escaped && text[end + 1] == quote) break;
      end += 2;
      continue;
    }
    if (text[end] == quote) break;
    ++end;
  }
  return {begin, std::min(end, text.size())};
}

bool IsQuoteAt(string_view text, std::size_t at) {
  if (at >= text.size()) return false;
  return IsQuote(text[at]) || (text[at] == '\\' && at + 1 < text.size() && IsQuote(text[at + 1]));
}

// Where a line of a file of variables, or of a shell's script, begins with a name.
bool BeginsLine(string_view text, std::size_t name) {
  constexpr string_view kExport = "export ";
  const string_view before = text.substr(0, name);
  const std::size_t line = before.rfind('\n') + 1;  // 0 where there is none.
  return before.substr(line).empty() || before.substr(line) == kExport;
}

// The value that follows a secret name, which ends at `at`.
std::optional<Value> ValueAfter(string_view text, std::size_t at, string_view word) {
  const std::string name = Normal(word);
  const std::size_t name_begin = at - word.size();
  if (name == "bearer") {
    const std::size_t begin = EndOf(text, at, IsBlank);
    const std::size_t end =
        EndOf(text, begin, [](char c) { return !IsSpace(c) && !IsQuote(c) && c != '\\'; });
    constexpr std::size_t kLeast = 8;
    if (begin == at || end - begin < kLeast) return std::nullopt;
    return Value{begin, end};
  }
  if (!IsSecretName(word)) return std::nullopt;
  const bool is_quoted = IsQuoteAt(text, at);
  if (is_quoted) at += text[at] == '\\' ? 2 : 1;
  const std::size_t gap = at;
  at = EndOf(text, at, IsBlank);
  if (at >= text.size()) return std::nullopt;
  const bool is_assigned = text[at] == '=' && !is_quoted;
  if (text[at] == '=' || text[at] == ':') {
    at = EndOf(text, at + 1, [](char c) { return c == '=' || c == '>' || IsBlank(c); });
  } else if (!word.starts_with('-') || at == gap || text[at] == '-') {
    return std::nullopt;
  }
  if (at >= text.size()) return std::nullopt;
  Value value = {at, at};
  if (IsQuoteAt(text, at)) {
    value = Quoted(text, at);
  } else if (is_assigned && name_begin > 0 && IsQuote(text[name_begin - 1])) {
    value.end = Quoted(text, name_begin - 1).end;  // Environment="NAME=VALUE"
  } else if (is_assigned && BeginsLine(text, name_begin)) {
    value.end = EndOf(text, at, [](char c) { return c != '\n' && c != '\r'; });
  } else if (IsHeader(name)) {
    value.end =
        EndOf(text, at, [](char c) { return c != '\n' && c != '\r' && !IsQuote(c) && c != '\\'; });
  } else {
    value.end = EndOf(text, at, [](char c) {
      return !IsSpace(c) && string_view("&\"',;)}]<>\\").find(c) == string_view::npos;
    });
    value.needs_quotes = is_quoted;
  }
  const string_view inside = text.substr(value.begin, value.end - value.begin);
  if (inside.empty() || inside.starts_with('{') || inside.starts_with('[')) return std::nullopt;
  if (inside == "null" || inside == "true" || inside == "false") return std::nullopt;
  const bool is_path =
      inside.starts_with('/') || inside.starts_with('.') || inside.starts_with('%');
  if (is_path && IsKeyName(name)) return std::nullopt;
  return value;
}

// Letters and digits in a mix that nobody writes by hand.
bool LooksRandom(string_view run) {
  const auto digits = std::count_if(run.begin(), run.end(), IsDigit);
  const bool has_lower = std::any_of(run.begin(), run.end(), IsLower);
  const bool has_upper = std::any_of(run.begin(), run.end(), IsUpper);
  if (!has_lower && !has_upper) return false;
  return (run.size() >= 20 && has_lower && has_upper && digits >= 2) ||
         (run.size() >= 24 && digits >= 4);
}

// What tokens of well-known services begin with.
bool HasKnownBeginning(string_view run) {
  constexpr std::array<string_view, 14> kBeginnings = {
      "AKIA", "ASIA", "AIza", "ghp_", "gho_", "ghs_",   "github_pat_",
      "hf_",  "sk-",  "npm_", "xox",  "ya29", "glpat-", "pypi-"};
  constexpr std::size_t kLeast = 12;  // Behind it.
  return std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](string_view beginning) {
    return run.starts_with(beginning) && run.size() >= beginning.size() + kLeast;
  });
}

bool HoldsRandom(string_view run) {
  if (HasKnownBeginning(run)) return true;
  for (std::size_t at = 0; at < run.size();) {
    const std::size_t end = EndOf(run, at, IsAlphanumeric);
    if (LooksRandom(run.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

// Calls `each` with all lines, with their ends.
template <typename Each>
void ForEachLine(string_view text, const Each& each) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    each(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// Where the password of a line of ~/.pgpass begins: HOST:PORT:DATABASE:USER:PASSWORD.
std::optional<std::size_t> PgpassPassword(string_view line) {
  std::array<std::size_t, 4> colons = {};
  std::size_t found = 0;
  for (std::size_t i = 0; i < line.size() && found < colons.size(); ++i) {
    if (IsSpace(line[i]) || IsQuote(line[i])) return std::nullopt;
    if (line[i] == ':' && (i == 0 || line[i - 1] != '\\')) colons[found++] = i;
  }
  if (found < colons.size()) return std::nullopt;
  const string_view port = line.substr(colons[0] + 1, colons[1] - colons[0] - 1);
  if (port != "*" && (port.empty() || !std::all_of(port.begin(), port.end(), IsDigit))) {
    return std::nullopt;
  }
  return colons[3] + 1;
}

// The token in a line of a token file: ROLE TOKEN NAME.
std::optional<Value> TokenOfLine(string_view line) {
  const std::size_t begin = EndOf(line, 0, IsBlank);
  const std::size_t end = EndOf(line, begin, IsLower);
  const string_view role = line.substr(begin, end - begin);
  if (role != "read" && role != "train" && role != "operate") return std::nullopt;
  constexpr std::size_t kLeast = 16;
  const std::size_t token = EndOf(line, end, IsBlank);
  const std::size_t token_end = EndOf(line, token, [](char c) { return !IsSpace(c); });
  if (token == end || token_end - token < kLeast) return std::nullopt;
  return Value{token, token_end};
}

// Whether an address that seems to end here has an @ yet to come: a password may hold quotes.
bool MayEndInPassword(string_view address) {
  const std::size_t colon = address.find(':');
  if (colon == string_view::npos || address.find('@') != string_view::npos) return false;
  if (address.starts_with('[')) return false;  // IPv6.
  const std::size_t port = EndOf(address, colon + 1, IsDigit);
  const bool is_port = port > colon + 1 && (port == address.size() || address[port] == '/' ||
                                            address[port] == '?' || address[port] == ',');
  return !is_port;
}

}  // namespace

bool IsSecretName(string_view name) {
  const std::string normal = Normal(name);
  for (const string_view end : {"file", "path", "dir", "tokens"}) {
    if (normal.ends_with(end)) return false;
  }
  if (normal == "loadcredential") return false;  // It names files.
  if (normal == "pwd") return false;             // A shell's folder.
  for (const string_view part :
       {"password", "passwd", "passphrase", "secret", "credential", "apikey", "api_key",
        "access_key", "private_key", "authorization", "cookie"}) {
    if (normal.find(part) != std::string::npos) return true;
  }
  if (normal.ends_with("_pass") || normal.ends_with("_pwd")) return true;
  return normal.ends_with("token") || normal == "auth" || normal == "pass" || IsKeyName(normal);
}

void Redactor::AddSecret(const std::string& secret) {
  if (secret.size() < kLeastSecret) return;
  if (std::find(secrets_.begin(), secrets_.end(), secret) != secrets_.end()) return;
  secrets_.push_back(secret);
  // One may hold another one.
  std::stable_sort(secrets_.begin(), secrets_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

void Redactor::Remove(std::string* out) {
  *out += kRemoved;
  ++removed_;
}

std::string Redactor::Redact(string_view text) {
  return WithoutRandom(
      WithoutValues(WithoutPasswords(WithoutLines(WithoutPem(WithoutKnown(std::string(text)))))));
}

std::string Redactor::WithoutKnown(std::string text) {
  for (const std::string& secret : secrets_) {
    for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos;) {
      text.replace(at, secret.size(), kRemoved);
      at += kRemoved.size();
      ++removed_;
    }
  }
  return text;
}

std::string Redactor::WithoutPem(string_view text) {
  constexpr string_view kBegin = "-----BEGIN ";
  constexpr string_view kEnd = "-----END ";
  std::string out;
  while (true) {
    const std::size_t begin = text.find(kBegin);
    out += text.substr(0, begin);
    if (begin == string_view::npos) return out;
    Remove(&out);
    const std::size_t end = text.find(kEnd, begin);
    const std::size_t over = end == string_view::npos ? end : text.find("-----", end + kEnd.size());
    if (over == string_view::npos) return out;
    text.remove_prefix(over + 5);
  }
}

std::string Redactor::WithoutLines(string_view text) {
  std::string out;
  ForEachLine(text, [&](string_view line) {
    const std::size_t end = std::min(line.find_first_of("\r\n"), line.size());
    std::optional<Value> value = TokenOfLine(line);
    if (const auto password = PgpassPassword(line.substr(0, end)); password && *password < end) {
      value = Value{*password, end};
    }
    if (!value) {
      out += line;
      return;
    }
    out += line.substr(0, value->begin);
    Remove(&out);
    out += line.substr(value->end);
  });
  return out;
}

std::string Redactor::WithoutPasswords(string_view text) {
  std::string out;
  while (true) {
    const std::size_t slashes = text.find("://");
    const std::size_t begin = slashes == string_view::npos ? text.size() : slashes + 3;
    out += text.substr(0, begin);
    if (slashes == string_view::npos) return out;
    std::size_t end = EndOf(text, begin, [](char c) {
      return !IsSpace(c) && !IsQuote(c) && c != '<' && c != '>' && c != '`' && c != '\\';
    });
    if (MayEndInPassword(text.substr(begin, end - begin))) {
      const std::size_t wide = EndOf(text, end, [](char c) { return !IsSpace(c); });
      if (text.substr(end, wide - end).find('@') != string_view::npos) end = wide;
    }
    const string_view address = text.substr(begin, end - begin);
    const std::size_t at = address.rfind('@');  // A password may hold one, unescaped.
    const std::size_t colon = address.substr(0, std::min(at, address.size())).find(':');
    if (at == string_view::npos || colon == string_view::npos || colon + 1 == at) {
      out += address;
    } else {
      out += address.substr(0, colon + 1);
      Remove(&out);
      out += address.substr(at);
    }
    text.remove_prefix(end);
  }
}

std::string Redactor::WithoutValues(string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = EndOf(text, at, IsNameByte);
    if (end == at) {
      out += text[at++];
      continue;
    }
    const std::optional<Value> value = ValueAfter(text, end, text.substr(at, end - at));
    if (!value || text.substr(value->begin, value->end - value->begin) == kRemoved) {
      out += text.substr(at, end - at);
      at = end;
      continue;
    }
    out += text.substr(at, value->begin - at);
    if (value->needs_quotes) out += '"';
    Remove(&out);
    if (value->needs_quotes) out += '"';
    at = value->end;
  }
  return out;
}

std::string Redactor::WithoutRandom(string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = EndOf(text, at, IsTokenByte);
    if (end == at) {
      out += text[at++];
      continue;
    }
    const string_view run = text.substr(at, end - at);
    const bool is_path = run.front() == '/' || (at > 0 && text[at - 1] == '.');
    if (!HoldsRandom(run)) {
      out += run;
    } else if (!is_path) {
      Remove(&out);
    } else {
      for (std::size_t from = 0; from <= run.size();) {
        const std::size_t to = std::min(run.find('/', from), run.size());
        const string_view segment = run.substr(from, to - from);
        if (HoldsRandom(segment)) {
          Remove(&out);
        } else {
          out += segment;
        }
        if (to < run.size()) out += '/';
        from = to + 1;
      }
    }
    at = end;
  }
  return out;
}

}  // namespace perseus::cli
