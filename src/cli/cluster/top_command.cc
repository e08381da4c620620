// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/cluster/event_text.h"
#include "cli/cluster/job_values.h"
#include "cli/cluster/server_client.h"
#include "cli/cluster/top_flags.h"
#include "cli/cluster/top_text.h"
#include "cli/commands.h"
#include "common/json_text.h"
#include "common/printable.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kTerminalSeconds = 2;
// The lines of the screen that are no jobs: count, header, rule, what is beyond, and the cursor's.
constexpr int kOtherLines = 7;

class Top {
 public:
  Top(ServerClient client, const TopFlags& flags, const Style& style)
      : client_(std::move(client)), flags_(flags), style_(style) {}

  Result<Printout> Run() {
    const std::optional<double> pause = Pause();
    if (!pause) {
      const Result<Json> jobs = Jobs();
      if (!jobs) return tl::unexpected(jobs.error());
      return Printout(Shown(*jobs, false));
    }
    std::string text;  // As it was last.
    while (HasReader()) {
      const Result<Json> jobs = Jobs();
      const bool is_gone = !jobs && jobs.error().code == ErrorCode::kIo && !text.empty();
      if (!jobs && !is_gone) return tl::unexpected(jobs.error());
      if (jobs) text = Shown(*jobs, IsDrawn());
      const Result<bool> shown =
          WriteStandardOutput(Framed(text, jobs ? "" : jobs.error().message));
      if (!shown) return tl::unexpected(shown.error());
      if (!*shown) break;
      std::this_thread::sleep_for(std::chrono::duration<double>(*pause));
    }
    return Printout("");
  }

 private:
  // Over what was there, on a terminal that takes that.
  bool IsDrawn() const { return style_.color && !flags_.json; }

  // Between two tables; none: there is only one.
  std::optional<double> Pause() const {
    if (flags_.once) return std::nullopt;
    if (flags_.every_seconds) return flags_.every_seconds;
    return IsDrawn() ? std::optional(kTerminalSeconds) : std::nullopt;
  }

  // Without the finished ones, of which there may be thousands, unless they are asked for.
  Result<Json> Jobs() {
    std::vector<std::string> filters = {""};
    if (!flags_.all) filters.assign(kUnfinishedStates.begin(), kUnfinishedStates.end());
    Json jobs = Json::array();
    std::set<std::string> seen;  // A job may change its state between two questions.
    for (const std::string& state : filters) {
      const Result<Json> found =
          client_.Jobs(ServerClient::Filter("state", state) +
                       ServerClient::Filter("label", LabelFilter(flags_.labels)));
      if (!found) return tl::unexpected(found.error());
      for (const Json& job : found->at("jobs")) {
        if (seen.insert(job.value("id", std::string())).second) jobs.push_back(job);
      }
    }
    SortJobs(flags_.sort, &jobs);
    return jobs;
  }

  std::string Shown(const Json& jobs, bool fits_screen) const {
    if (flags_.json) return JsonText(FormatCompact(Json{{"jobs", jobs}})) + "\n";
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const double now_seconds = std::chrono::duration<double>(now).count();
    if (!fits_screen) return TopTable(jobs, style_, now_seconds);
    return TopTable(jobs, style_, now_seconds,
                    static_cast<std::size_t>(std::max(style_.rows - kOtherLines, 1)));
  }

  // `why_gone`: empty, or why there is no newer table.
  std::string Framed(const std::string& text, const std::string& why_gone) {
    if (why_gone.empty()) gone_since_.reset();
    if (!why_gone.empty() && !gone_since_) gone_since_ = std::time(nullptr);
    const std::string note =
        gone_since_ ? fmt::format("The server is gone since {:%H:%M:%S}: {}. This is how it was.\n",
                                  fmt::localtime(*gone_since_), Printable(why_gone))
                    : "";
    if (IsDrawn()) return fmt::format("\x1b[H\x1b[2J{}{}", note, text);
    if (!note.empty()) WriteStandardError(note);
    return note.empty() ? text + (flags_.json ? "" : "\n") : "";
  }

  ServerClient client_;
  const TopFlags& flags_;
  const Style& style_;
  std::optional<std::time_t> gone_since_;
};

}  // namespace

Result<Printout> RunTop(const TopFlags& flags, const Style& style) {
  if (flags.once && flags.every_seconds) {
    return InvalidInput("--once and --every exclude each other: give one of them");
  }
  Result<ServerClient> client = ServerClient::Connect(flags.server);
  if (!client) return tl::unexpected(client.error());
  return Top(*std::move(client), flags, style).Run();
}

}  // namespace perseus::cli
