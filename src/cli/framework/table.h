// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FRAMEWORK_TABLE_H_
#define PERSEUS_CLI_FRAMEWORK_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/framework/terminal.h"

namespace perseus::cli {

enum class Align : std::uint8_t { kLeft, kRight };

// A table of text for a terminal: columns as wide as their widest cell, two
// spaces apart, a rule under the header. Cells count code points, so UTF-8
// text stays aligned. A plain value.
class Table {
 public:
  static constexpr std::size_t kWidestCell = 60;

  explicit Table(std::vector<std::string> header, std::vector<Align> alignment);

  // `cells` may be shorter than the header; the rest stay empty. What a terminal
  // would obey in them is made printable, and they are cut at kWidestCell.
  void AddRow(std::vector<std::string> cells);
  // `line` is what the rule is drawn with ("-" or a box-drawing dash).
  std::string Format(std::string_view line) const;

 private:
  std::vector<std::string> header_;
  std::vector<Align> alignment_;
  std::vector<std::vector<std::string>> rows_;
};

// Text in columns of at most `width` characters, every line after the first
// indented by `indent` spaces; breaks at spaces only.
std::string Wrap(std::string_view text, int width, int indent);

// As Printable() (common/printable.h), for a whole output: line ends, tabs and the styles
// of Style stay.
std::string WithoutControls(std::string_view text);

// The number of terminal columns of UTF-8 text without wide characters.
int DisplayWidth(std::string_view text);

// Numbers as people read them. All of them independent of the locale.
std::string WithThousands(double value, int decimals);          // 12,345.7
std::string CountOf(long long count, std::string_view noun);    // 1 stage, 8 stages
std::string FormatSeconds(double seconds);                      // 18.2340 s, 3.456 ms
std::string FormatJoules(double joules);                        // 20,332.1 J, 1.234 mJ
std::string FormatWatts(double watts);                          // 1,286.4 W
std::string FormatPercent(double percent, int decimals);        // 13.32 %
std::string FormatSignedPercent(double percent, int decimals);  // +1.00 %

enum class FindingLevel : std::uint8_t {
  kOk,
  kNote,     // Good to know.
  kWarning,  // It works, but less well.
  kFault,    // Why it does not.
};

// One thing that was looked at.
struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string about;    // "driver", "GPU 3", ...
  std::string message;  // A sentence.
  std::string fix;      // What to do; empty where nothing is to be done.
};

long long CountOfLevel(const std::vector<Finding>& findings, FindingLevel level);

// For people: a paragraph each.
std::string FormatFindings(const std::vector<Finding>& findings, const Style& style);
// For programs: objects with level, about, message and fix.
nlohmann::ordered_json FindingsJson(const std::vector<Finding>& findings);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FRAMEWORK_TABLE_H_
