// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes through perseus/planner_c.h: a plan or one sentence, never a crash. The first byte
// chooses: 'g', the rest is a graph; 'm', the rest says how the calls of a good job and of a good
// graph are misused; else it is a profile, settings and a schedule with a zero byte between.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bytes.h"
#include "perseus/planner_c.h"

namespace {

// Answers "go on" so often: an input costs little time.
constexpr int kPatience = 40;

int CountDown(void* user, double share) {
  if (!(share >= 0)) std::abort();
  return --*static_cast<int*>(user) < 0 ? 1 : 0;
}

// An error has a sentence; nothing is our fault.
void Check(perseus_status status, char** message) {
  if ((status == PERSEUS_OK) != (*message == nullptr)) std::abort();
  if (status == PERSEUS_INTERNAL) std::abort();
  perseus_planner_free_text(*message);
  *message = nullptr;
}

// A plan that was written is read, and written again as it was.
void CheckRead(const char* json) {
  perseus_plan* plan = nullptr;
  if (perseus_plan_read(json, std::strlen(json), "plan.json", &plan, nullptr) != PERSEUS_OK) {
    std::abort();
  }
  char* again = nullptr;
  if (perseus_plan_json(plan, &again, nullptr) != PERSEUS_OK) std::abort();
  if (std::strcmp(json, again) != 0) std::abort();
  perseus_planner_free_text(again);
  perseus_plan_free(plan);
}

// Whether a number in a text may ask for more than a fuzzer has time for.
bool IsLarge(std::string_view text) {
  constexpr int kDigits = 3;
  int digits = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits >= kDigits) return true;
  }
  return false;
}

// As many notes as it says, each with a sentence, and none behind them.
template <typename Count, typename Get>
void CheckNotes(const Count& count, const Get& get) {
  perseus_note note;
  for (std::size_t i = 0; i < count(); ++i) {
    PERSEUS_INIT(&note);
    if (get(i, &note) != PERSEUS_OK || std::strlen(note.text) == 0 || note.source == nullptr) {
      std::abort();
    }
  }
  PERSEUS_INIT(&note);
  if (get(count(), &note) != PERSEUS_INVALID) std::abort();
}

std::string_view NextPart(std::string_view* text) {
  const std::size_t end = std::min(text->find('\0'), text->size());
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

void TryJob(std::string_view text) {
  const std::string_view profile = NextPart(&text);
  const std::string_view settings = NextPart(&text);
  const std::string_view schedule = NextPart(&text);
  // A path in the settings would be read.
  if (IsLarge(settings) || settings.find("profile") != std::string_view::npos ||
      settings.find("schedule_file") != std::string_view::npos ||
      settings.find('\\') != std::string_view::npos) {
    return;
  }
  int patience = kPatience;
  perseus_planner_input input;
  perseus_planner_input_init(&input, sizeof(input));
  input.profile_csv = profile.data();
  input.profile_csv_size = profile.size();
  if (!settings.empty()) {
    input.settings_json = settings.data();
    input.settings_json_size = settings.size();
  }
  if (!schedule.empty()) {
    input.schedule_csv = schedule.data();
    input.schedule_csv_size = schedule.size();
  }
  input.progress = CountDown;
  input.user = &patience;
  perseus_planner* planner = nullptr;
  char* message = nullptr;
  const perseus_status status = perseus_planner_create(&input, &planner, &message);
  Check(status, &message);
  if (status != PERSEUS_OK) return;
  constexpr std::string_view kQuick = R"({"effort": 0.001})";
  CheckNotes([&] { return perseus_planner_note_count(planner); },
             [&](std::size_t index, perseus_note* note) {
               return perseus_planner_get_note(planner, index, note, nullptr);
             });
  perseus_plan* plan = nullptr;
  const perseus_status planned = perseus_planner_plan(planner, kQuick.data(), kQuick.size(),
                                                      CountDown, &patience, &plan, &message);
  Check(planned, &message);
  if (planned == PERSEUS_OK) {
    char* json = nullptr;
    if (perseus_plan_json(plan, &json, nullptr) != PERSEUS_OK) std::abort();
    CheckRead(json);
    perseus_planner_free_text(json);
    char* report = nullptr;
    if (perseus_plan_report(plan, &report, nullptr) != PERSEUS_OK) std::abort();
    perseus_planner_free_text(report);
    char* csv = nullptr;
    if (perseus_planner_profile_csv(planner, &csv, nullptr) != PERSEUS_OK) std::abort();
    perseus_planner_free_text(csv);
    char* zeus = nullptr;
    Check(perseus_plan_zeus(plan, &zeus, &message), &message);
    perseus_planner_free_text(zeus);
    CheckNotes([&] { return perseus_plan_note_count(plan); },
               [&](std::size_t index, perseus_note* note) {
                 return perseus_plan_get_note(plan, index, note, nullptr);
               });
  }
  perseus_plan_free(plan);
  perseus_planner_free(planner);
}

void TryGraph(Bytes bytes) {
  std::vector<std::int32_t> first_option = {0};
  std::vector<double> time;
  std::vector<double> cost;
  for (int curves = bytes.Take<std::uint8_t>() % 4; curves >= 0; --curves) {
    for (int options = bytes.Take<std::uint8_t>() % 4; options > 0; --options) {
      // Whole numbers, and now and then any bits.
      const bool wild = bytes.Take<std::uint8_t>() % 8 == 0;
      time.push_back(wild ? bytes.Take<double>() : bytes.Take<std::int8_t>() & 0x3f);
      cost.push_back(wild ? bytes.Take<double>() : bytes.Take<std::int8_t>());
    }
    first_option.push_back(static_cast<std::int32_t>(time.size()));
  }
  std::vector<std::int32_t> curve_of;
  for (int n = bytes.Take<std::uint8_t>() % 16; n >= 0; --n) {
    curve_of.push_back(bytes.Take<std::int8_t>() % 6);
  }
  std::vector<std::int32_t> from;
  std::vector<std::int32_t> to;
  std::vector<double> delay;
  for (int n = bytes.Take<std::uint8_t>() % 32; n > 0; --n) {
    from.push_back(bytes.Take<std::int8_t>() % 18);
    to.push_back(bytes.Take<std::int8_t>() % 18);
    delay.push_back(bytes.Take<std::int8_t>());
  }
  time.push_back(0);  // Never empty, so that data() is there.
  cost.push_back(0);
  perseus_dag dag = {};
  dag.struct_size = sizeof(dag);
  dag.num_operations = static_cast<std::int32_t>(curve_of.size());
  dag.num_curves = static_cast<std::int32_t>(first_option.size()) - 1;
  dag.curve_of = curve_of.data();
  dag.first_option = first_option.data();
  dag.option_time = time.data();
  dag.option_cost = cost.data();
  dag.num_precedences = from.size();
  dag.from = from.data();
  dag.to = to.data();
  dag.delay = delay.data();
  int patience = kPatience;
  perseus_dag_solution* solution = nullptr;
  char* message = nullptr;
  const perseus_status status = perseus_dag_solve(&dag, CountDown, &patience, &solution, &message);
  Check(status, &message);
  if (status != PERSEUS_OK) return;
  perseus_frontier frontier = {};
  frontier.struct_size = sizeof(frontier);
  if (perseus_dag_frontier(solution, &frontier, nullptr) != PERSEUS_OK) std::abort();
  const double deadline = frontier.fastest_seconds * 1.2;
  std::vector<std::int32_t> options(curve_of.size(), -1);
  perseus_dag_choice choice = {};
  choice.struct_size = sizeof(choice);
  const perseus_status chosen = perseus_dag_choose(solution, deadline, 0.001, CountDown, &patience,
                                                   options.data(), &choice, &message);
  Check(chosen, &message);
  if (chosen == PERSEUS_OK) {
    if (!(choice.time <= deadline)) std::abort();
    for (std::size_t i = 0; i < options.size(); ++i) {
      const int curve = curve_of[i];
      if (options[i] < 0 || options[i] >= first_option[curve + 1] - first_option[curve]) {
        std::abort();
      }
    }
  }
  perseus_dag_free(solution);
}

// Structs that are too large, too small or never begun, texts without a size, nothing where there
// should be something: each is refused, and nothing is made.
void TryMisuse(Bytes bytes) {
  constexpr std::string_view kProfile =
      "stage,instruction,frequency,time,energy\n0,forward,1400,1,2\n0,forward,1000,2,1\n"
      "0,backward,1400,1,2\n0,backward,1000,2,1\n";
  constexpr std::string_view kSettings =
      "{\"schedule\": \"1f1b\", \"microbatches\": 2, \"blocking_power\": 0.1}";
  // Behind every struct there is memory for the largest size that is believed.
  constexpr std::size_t kRoom = 4096;
  struct alignas(16) Room {
    std::uint8_t bytes[kRoom];
  };
  static Room room;
  const auto begin = [&](auto* as) {
    std::memset(&room, bytes.Take<std::uint8_t>() % 4 == 0 ? 0xa5 : 0, sizeof(room));
    std::remove_pointer_t<decltype(as)> begun;
    PERSEUS_INIT(&begun);
    std::memcpy(&room, &begun, sizeof(begun));
    if (bytes.Take<std::uint8_t>() % 2 == 0) {
      const auto size = bytes.Take<std::uint32_t>();
      std::memcpy(&room, &size, sizeof(size));
    }
    return reinterpret_cast<decltype(as)>(&room);
  };
  const auto size_of = [&](std::string_view text) {
    const int kind = bytes.Take<std::uint8_t>() % 4;
    return kind == 0 ? std::size_t{0} : kind == 1 ? PERSEUS_TO_ZERO : text.size();
  };
  auto* input = begin(static_cast<perseus_planner_input*>(nullptr));
  input->profile_csv = kProfile.data();
  input->profile_csv_size = size_of(kProfile);
  input->settings_json = kSettings.data();
  input->settings_json_size = size_of(kSettings);
  const int wrong = bytes.Take<std::uint8_t>() % 8;
  if (wrong == 0) input->profile_csv = nullptr;
  if (wrong == 1) input->reserved = 1;
  perseus_planner* planner = nullptr;
  char* message = nullptr;
  const perseus_status status = perseus_planner_create(input, &planner, &message);
  Check(status, &message);
  if ((planner == nullptr) == (status == PERSEUS_OK)) std::abort();
  Check(perseus_planner_frontier(planner, begin(static_cast<perseus_frontier*>(nullptr)), &message),
        &message);
  std::vector<double> work(bytes.Take<std::uint8_t>() % 4, 1.0);
  for (double& factor : work) factor = bytes.Take<double>();
  work.push_back(1);  // Never empty.
  perseus_plan* plan = nullptr;
  const std::size_t count =
      bytes.Take<std::uint8_t>() % 2 == 0 ? work.size() : bytes.Take<std::size_t>();
  int patience = kPatience;
  const perseus_status planned =
      perseus_planner_plan_work(planner, work.data(), count == 2 && work.size() < 2 ? 0 : count,
                                "{}", size_of("{}"), CountDown, &patience, &plan, &message);
  Check(planned, &message);
  Check(
      perseus_plan_get_figures(plan, begin(static_cast<perseus_plan_figures*>(nullptr)), &message),
      &message);
  Check(
      perseus_plan_get_columns(plan, begin(static_cast<perseus_plan_columns*>(nullptr)), &message),
      &message);
  Check(perseus_planner_get_note(planner, bytes.Take<std::uint8_t>() % 3,
                                 begin(static_cast<perseus_note*>(nullptr)), &message),
        &message);
  Check(perseus_plan_get_note(plan, bytes.Take<std::uint8_t>() % 3,
                              begin(static_cast<perseus_note*>(nullptr)), &message),
        &message);
  perseus_plan_free(plan);
  plan = nullptr;
  // Other pipelines, with as many factors each as there are microbatches.
  std::vector<double> others(2 * (bytes.Take<std::uint8_t>() % 3), 1.0);
  for (double& factor : others) {
    factor = bytes.Take<std::uint8_t>() % 4 == 0 ? bytes.Take<double>() : 1.5;
  }
  const std::vector<double> own = {1, 2};
  const std::size_t pipelines = others.size() / 2;
  const bool none = bytes.Take<std::uint8_t>() % 8 == 0;
  const perseus_status among = perseus_planner_plan_work_among(
      planner, own.data(), bytes.Take<std::uint8_t>() % 8 == 0 ? 1 : own.size(),
      none ? nullptr : others.data(), pipelines, nullptr, 0, CountDown, &patience, &plan, &message);
  Check(among, &message);
  if ((plan == nullptr) == (among == PERSEUS_OK)) std::abort();
  perseus_plan_free(plan);
  perseus_planner_free(planner);

  // A good graph in a struct of any size.
  const std::int32_t curve_of[] = {0, 0};
  const std::int32_t first_option[] = {0, 2};
  const double time[] = {1, 2};
  const double cost[] = {2, 1};
  const std::int32_t from[] = {0};
  const std::int32_t to[] = {1};
  auto* dag = begin(static_cast<perseus_dag*>(nullptr));
  dag->num_operations = 2;
  dag->num_curves = 1;
  dag->curve_of = curve_of;
  dag->first_option = first_option;
  dag->option_time = time;
  dag->option_cost = cost;
  dag->num_precedences = 1;
  dag->from = from;
  dag->to = to;
  const int missing = bytes.Take<std::uint8_t>() % 16;
  if (missing == 0) dag->curve_of = nullptr;
  if (missing == 1) dag->option_time = nullptr;
  if (missing == 2) dag->to = nullptr;
  if (missing == 3) dag->reserved = 1;
  if (missing != 4) dag->delay = nullptr;
  if (missing == 4 && dag->struct_size >= sizeof(*dag)) dag->delay = time;
  perseus_dag_solution* solution = nullptr;
  const perseus_status solved = perseus_dag_solve(dag, CountDown, &patience, &solution, &message);
  Check(solved, &message);
  if ((solution == nullptr) == (solved == PERSEUS_OK)) std::abort();
  std::int32_t options[2];
  Check(perseus_dag_choose(solution, bytes.Take<double>(), bytes.Take<std::uint8_t>() % 2 * 0.001,
                           nullptr, nullptr, options,
                           begin(static_cast<perseus_dag_choice*>(nullptr)), &message),
        &message);
  perseus_dag_free(solution);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  if (data[0] == 'g') {
    TryGraph(Bytes(data + 1, size - 1));
  } else if (data[0] == 'm') {
    TryMisuse(Bytes(data + 1, size - 1));
  } else {
    TryJob(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  }
  return 0;
}
