// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>

#include "job/job_fields.h"
#include "model/plan_figures.h"

// The parts of docs/reference/files.md that are made from the lists of figures and of fields. With
// PERSEUS_WRITE_REFERENCE=1 in the environment they are written anew.
namespace perseus {
namespace {

constexpr const char* kPage = "docs/reference/files.md";

// An item of a list, with lines of at most 100 columns.
std::string Item(std::string_view text) {
  std::string item = "-";
  std::size_t column = 1;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word; column += 1 + word.size()) {
    if (column + 1 + word.size() > 100) {
      item += "\n ";
      column = 1;
    }
    item += " " + word;
  }
  return item + "\n";
}

template <typename Of>
std::string FigureList(std::string_view group) {
  std::string list;
  for (const model::Figure<Of>& figure : model::Figures<Of>()) {
    // The star says that the field may be missing.
    list += Item(fmt::format("`{}{}{}`{}: {}", group, group.empty() ? "" : ".", figure.name,
                             figure.required ? "" : R"(\*)", figure.says));
  }
  return list;
}

std::string RangeText(const NumberRange& range) {
  return fmt::format("{}{:.10g} to {}{:.10g}", range.above_least ? "above " : "", range.least,
                     range.below_most ? "below " : "", range.most);
}

// What a value may be, by the type and the unit of its field. Names are in the meaning.
struct ValueText {
  const job::Field& field;

  std::string Number() const {
    switch (field.unit) {
      case job::Unit::kWatts:
        return RangeText(field.range) + " W";
      case job::Unit::kJoules:
        return RangeText(field.range) + " J";
      case job::Unit::kSeconds:
        return RangeText(field.range) + " s";
      default:
        return RangeText(field.range);
    }
  }
  std::string operator()(std::optional<std::string> JobFile::* /*member*/) const {
    if (field.unit == job::Unit::kPath) return "path";
    if (field.unit == job::Unit::kText) return "text";
    return "name";
  }
  std::string operator()(std::optional<int> JobFile::* /*member*/) const {
    return RangeText(field.range) + ", whole";
  }
  std::string operator()(std::optional<double> JobFile::* /*member*/) const { return Number(); }
  std::string operator()(std::optional<ValueRange> JobFile::* /*member*/) const {
    return Number() + ", or a range";
  }
  std::string operator()(std::vector<double> JobFile::* /*member*/) const {
    return Number() + ", or an array";
  }
  std::string operator()(std::optional<PlanTarget> JobFile::* /*member*/) const { return "text"; }
  std::string operator()(std::optional<Granularity> JobFile::* /*member*/) const { return "name"; }
  std::string operator()(std::optional<TimeMargin> JobFile::* /*member*/) const { return "text"; }
  std::string operator()(std::optional<CallAhead> JobFile::* /*member*/) const { return "name"; }
  std::string operator()(std::optional<bool> JobFile::* /*member*/) const { return "boolean"; }
  std::string operator()(std::vector<ClockLatency> JobFile::* /*member*/) const { return "text"; }
  std::string operator()(std::optional<WorkSetting> JobFile::* /*member*/) const {
    return "path, or an array of " + RangeText(field.range);
  }
};

// The flag that the page says a key has, if its item names none.
std::string UsualFlag(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string FieldList(bool conditions) {
  std::string list;
  for (const job::Field& field : job::Fields()) {
    if (field.condition() != conditions) continue;
    // Its first sentence: the help has the rest, and the names of the schedules.
    std::string says = field.unit == job::Unit::kScheduleName
                           ? "The pipeline schedule, of [schedules](schedules.md)."
                           : std::string(field.help.substr(0, field.help.find(". ")));
    if (!says.ends_with('.')) says += '.';
    if (!field.flag.empty() && field.flag != UsualFlag(field.key)) {
      says = fmt::format("(`{}`) {}", field.flag, says);
    }
    list += Item(
        fmt::format("`{}` ({}): {}", field.key, std::visit(ValueText{field}, field.member), says));
  }
  return list;
}

std::string PageText() {
  std::ostringstream text;
  text << std::ifstream(kPage).rdbuf();
  return text.str();
}

TEST(Reference, PageHasWhatTheListsSay) {
  std::string page = PageText();
  const std::string before = page;
  const std::pair<std::string_view, std::string> parts[] = {
      {"job fields", FieldList(false)},
      {"conditions", FieldList(true)},
      {"figures", FigureList<PlanFigures>("")},
      {"shared clocks", FigureList<SharedKnobBound>(model::kSharedKnobGroup)},
      {"saving interval", FigureList<SavingInterval>(model::kSavingIntervalGroup)},
      {"default_clocks figures", FigureList<DefaultClockFigures>(model::kDefaultClocksGroup)},
      {"expected figures", FigureList<ExpectedFigures>(model::kExpectedGroup)}};
  for (const auto& [name, part] : parts) {
    const std::string begin = fmt::format("<!-- {}: made from the code -->\n", name);
    const std::size_t first = page.find(begin);
    const std::size_t last = page.find("<!-- end -->", first);
    ASSERT_TRUE(first != std::string::npos && last != std::string::npos) << name;
    page.replace(first + begin.size(), last - first - begin.size(), "\n" + part + "\n");
  }
  if (std::getenv("PERSEUS_WRITE_REFERENCE") != nullptr) std::ofstream(kPage) << page;
  EXPECT_EQ(PageText(), page) << "write it anew: PERSEUS_WRITE_REFERENCE=1 ctest --preset release "
                                 "-R '^job.Reference'";
  EXPECT_FALSE(before.empty());
}

}  // namespace
}  // namespace perseus
