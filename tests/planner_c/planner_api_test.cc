// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "perseus/job.h"
#include "perseus/plan_file.h"
#include "perseus/planner_c.h"
#include "perseus/report.h"
#include "planner_c/planner_testing.h"

namespace perseus::planner_c {
namespace {

struct MadePlan {
  perseus_status status = PERSEUS_OK;
  std::string message;
  PlanHandle plan;
};

MadePlan PlanOf(const perseus_planner* planner, std::string_view settings,
                perseus_planner_progress progress = nullptr, void* user = nullptr) {
  perseus_plan* plan = nullptr;
  char* message = nullptr;
  MadePlan made;
  made.status = perseus_planner_plan(planner, settings.empty() ? nullptr : settings.data(),
                                     settings.size(), progress, user, &plan, &message);
  made.plan.reset(plan);
  made.message = Take(message);
  return made;
}

perseus_plan_figures FiguresOf(const perseus_plan* plan) {
  perseus_plan_figures figures = {};
  figures.struct_size = sizeof(figures);
  EXPECT_EQ(perseus_plan_get_figures(plan, &figures, nullptr), PERSEUS_OK);
  return figures;
}

class PlanApi : public testing::Test {
 protected:
  void SetUp() override {
    made_ = Create(InputOf(kProfile, kSettings));
    ASSERT_EQ(made_.status, PERSEUS_OK) << made_.message;
  }

  const perseus_planner* planner() const { return made_.planner.get(); }

  Made made_;
};

std::string JsonOf(const perseus_plan* plan) {
  char* text = nullptr;
  EXPECT_EQ(perseus_plan_json(plan, &text, nullptr), PERSEUS_OK);
  return Take(text);
}

// Every member is the figure of that name in plan.json.
void ExpectFiguresOfTheFile(const perseus_plan* plan) {
  const perseus_plan_figures figures = FiguresOf(plan);
  const auto json = nlohmann::json::parse(JsonOf(plan));
  const auto expect = [](const nlohmann::json& group,
                         const std::vector<std::pair<const char*, double>>& members) {
    for (const auto& [name, value] : members) {
      const nlohmann::json& want = group.at(name);
      EXPECT_EQ(value, want.is_boolean() ? (want.get<bool>() ? 1.0 : 0.0) : want.get<double>())
          << name;
    }
  };
  expect(json, {{"requested_time_s", figures.requested_time_seconds},
                {"iteration_time_s", figures.iteration_time_seconds},
                {"energy_j", figures.energy_joules},
                {"average_power_w", figures.average_power_watts},
                {"lower_bound_j", figures.lower_bound_joules},
                {"gap_percent", figures.gap_percent},
                {"saving_percent", figures.saving_percent},
                {"knob_changes", figures.knob_changes},
                {"distinct_knobs", figures.distinct_knobs}});
  EXPECT_EQ(figures.has_shared_knob_bound, json.contains("shared_clocks") ? 1 : 0);
  if (figures.has_shared_knob_bound == 1) {
    expect(json["shared_clocks"], {{"lower_bound_j", figures.shared_knob_bound_joules},
                                   {"gap_percent", figures.shared_knob_gap_percent},
                                   {"proven", figures.proven_best}});
  }
  EXPECT_EQ(figures.has_expected, json.contains("expected") ? 1 : 0);
  if (figures.has_expected == 1) {
    expect(json["expected"], {{"iteration_time_s", figures.expected_iteration_time_seconds},
                              {"energy_j", figures.expected_energy_joules},
                              {"slowdown_percent", figures.expected_slowdown_percent},
                              {"saving_percent", figures.expected_saving_percent},
                              {"clock_calls", figures.expected_clock_calls}});
  }
}

TEST_F(PlanApi, PlansUnderConditionsHoldAndSayWhatIsExpected) {
  constexpr std::string_view kConditions =
      R"("conditions": {"switch_latency": "1ms", "call_ahead": "predicted", "noise": "1%"})";
  const std::string with = fmt::format(
      R"({{"schedule": "1f1b", "microbatches": 4, "blocking_power": 70, {}}})", kConditions);
  const Made under = Create(InputOf(kProfile, with));
  ASSERT_EQ(under.status, PERSEUS_OK) << under.message;
  const MadePlan of_job = PlanOf(under.planner.get(), "");
  ASSERT_EQ(of_job.status, PERSEUS_OK) << of_job.message;
  const auto document = ParsePlanJson(JsonOf(of_job.plan.get()), "plan.json");
  ASSERT_TRUE(document) << document.error().message;
  ASSERT_TRUE(document->conditions && document->expected);
  EXPECT_EQ(document->conditions->switching.latency_seconds, 1e-3);
  const perseus_plan_figures figures = FiguresOf(of_job.plan.get());
  EXPECT_EQ(figures.has_expected, 1);
  EXPECT_EQ(figures.expected_saving_percent, document->expected->saving_percent);
  EXPECT_EQ(figures.expected_iteration_time_seconds, document->expected->iteration_time_seconds);
  EXPECT_GT(figures.expected_saving_percent, 0);
  ExpectFiguresOfTheFile(of_job.plan.get());
  EXPECT_LE(figures.expected_slowdown_percent,
            0.1 + 4 * document->expected->slowdown_spread_percent);

  // The same where they are given with the plan, not the job.
  const MadePlan of_plan = PlanOf(planner(), fmt::format("{{{}}}", kConditions));
  ASSERT_EQ(of_plan.status, PERSEUS_OK) << of_plan.message;
  EXPECT_EQ(JsonOf(of_plan.plan.get()), JsonOf(of_job.plan.get()));
  EXPECT_EQ(FiguresOf(PlanOf(planner(), "").plan.get()).has_expected, 0);
}

TEST_F(PlanApi, FiguresAreEnumeratedUnderTheirNames) {
  const MadePlan made = PlanOf(planner(), "");
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  const auto json = nlohmann::json::parse(JsonOf(made.plan.get()));
  const std::size_t count = perseus_plan_figure_count(made.plan.get());
  std::size_t own = 0;
  for (std::size_t i = 0; i < count; ++i) {
    perseus_figure figure = {};
    figure.struct_size = sizeof(figure);
    ASSERT_EQ(perseus_plan_get_figure(made.plan.get(), i, &figure, nullptr), PERSEUS_OK);
    EXPECT_EQ(figure.known != 0, *figure.group == 0) << figure.name;
    if (figure.known == 0) continue;
    ++own;
    EXPECT_EQ(figure.value, json.at(figure.name).get<double>()) << figure.name;
  }
  EXPECT_EQ(own, 9u);
  perseus_figure figure = {};
  figure.struct_size = sizeof(figure);
  EXPECT_EQ(perseus_plan_get_figure(made.plan.get(), count, &figure, nullptr), PERSEUS_INVALID);
  EXPECT_EQ(perseus_plan_get_figure(nullptr, 0, &figure, nullptr), PERSEUS_INVALID);
  EXPECT_EQ(perseus_plan_figure_count(nullptr), 0u);
}

TEST_F(PlanApi, PlansForLengthsAreMadeWithoutConditions) {
  constexpr std::string_view kConditions = R"({"conditions": {"noise": "1%"}})";
  const double work[] = {1, 1, 2, 1};
  perseus_plan* plan = nullptr;
  char* message = nullptr;
  EXPECT_EQ(perseus_planner_plan_work(planner(), work, 4, kConditions.data(), kConditions.size(),
                                      nullptr, nullptr, &plan, &message),
            PERSEUS_INVALID);
  EXPECT_EQ(Take(message),
            "a plan for given lengths is made without conditions; leave 'conditions' out here");
  // Those of the job are for its own plan.
  constexpr std::string_view kWith = R"({"schedule": "1f1b", "microbatches": 4,)"
                                     R"( "blocking_power": 70, "conditions": {"noise": "1%"}})";
  const Made under = Create(InputOf(kProfile, kWith));
  ASSERT_EQ(perseus_planner_plan_work(under.planner.get(), work, 4, nullptr, 0, nullptr, nullptr,
                                      &plan, nullptr),
            PERSEUS_OK);
  const PlanHandle held(plan);
  ASSERT_EQ(
      perseus_planner_plan_work(planner(), work, 4, nullptr, 0, nullptr, nullptr, &plan, nullptr),
      PERSEUS_OK);
  const PlanHandle without(plan);
  EXPECT_EQ(JsonOf(held.get()), JsonOf(without.get()));
}

TEST_F(PlanApi, PipelinesThatWaitForAnotherTakeItsTime) {
  const double work[] = {1, 1, 2, 1};
  const double others[] = {1, 1, 1, 1, 2, 3, 2, 1};
  const auto plan_among = [&](const double* own, const double* rest, std::size_t count) {
    perseus_plan* plan = nullptr;
    char* message = nullptr;
    EXPECT_EQ(perseus_planner_plan_work_among(planner(), own, 4, rest, count, nullptr, 0, nullptr,
                                              nullptr, &plan, &message),
              PERSEUS_OK)
        << Take(message);
    return PlanHandle(plan);
  };
  const PlanHandle slowest = plan_among(others + 4, nullptr, 0);
  const PlanHandle among = plan_among(work, others, 2);
  EXPECT_EQ(FiguresOf(among.get()).requested_time_seconds,
            FiguresOf(slowest.get()).requested_time_seconds);
  EXPECT_EQ(JsonOf(plan_among(work, others, 1).get()),
            JsonOf(plan_among(work, nullptr, 0).get()));  // The other one is faster.
  perseus_plan* plan = nullptr;
  char* message = nullptr;
  EXPECT_EQ(perseus_planner_plan_work_among(planner(), work, 4, nullptr, 2, nullptr, 0, nullptr,
                                            nullptr, &plan, &message),
            PERSEUS_INVALID);
  EXPECT_EQ(Take(message), "the work of other pipelines is not given");
  const double wrong[] = {1, 1, 1, 1, 1, -1, 1, 1};
  const auto stop = [](void*, double) -> int { return 1; };
  EXPECT_EQ(perseus_planner_plan_work_among(planner(), work, 4, wrong, 2, nullptr, 0, nullptr,
                                            nullptr, &plan, &message),
            PERSEUS_INVALID);
  EXPECT_EQ(Take(message).rfind("others[1]: ", 0), 0U);
  EXPECT_EQ(perseus_planner_plan_work_among(planner(), work, 4, others, 2, nullptr, 0, stop,
                                            nullptr, &plan, nullptr),
            PERSEUS_CANCELLED);
}

TEST_F(PlanApi, GivingUpUnderConditionsGivesNoPlan) {
  constexpr std::string_view kConditions = R"({"conditions": {"noise": "1%"}})";
  int calls = 0;
  const auto count = [](void* user, double) -> int {
    ++*static_cast<int*>(user);
    return 0;
  };
  ASSERT_EQ(PlanOf(planner(), kConditions, count, &calls).status, PERSEUS_OK);
  ASSERT_GT(calls, 1);
  for (const int end : {0, calls / 2, calls - 1}) {
    int left = end;
    const auto stop = [](void* user, double) -> int {
      return (*static_cast<int*>(user))-- > 0 ? 0 : 1;
    };
    EXPECT_EQ(PlanOf(planner(), kConditions, stop, &left).status, PERSEUS_CANCELLED) << end;
  }
}

TEST_F(PlanApi, FiguresAndColumnsAreThoseOfTheFile) {
  const MadePlan made = PlanOf(planner(), R"({"at": "1.05x"})");
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  char* text = nullptr;
  ASSERT_EQ(perseus_plan_json(made.plan.get(), &text, nullptr), PERSEUS_OK);
  const auto document = ParsePlanJson(Take(text), "plan.json");
  ASSERT_TRUE(document) << document.error().message;
  const perseus_plan_figures figures = FiguresOf(made.plan.get());
  EXPECT_EQ(figures.iteration_time_seconds, document->iteration_time_seconds);
  EXPECT_EQ(figures.energy_joules, document->energy_joules);
  EXPECT_EQ(figures.lower_bound_joules, document->lower_bound_joules);
  EXPECT_EQ(figures.distinct_knobs, document->distinct_knobs);
  EXPECT_LE(figures.iteration_time_seconds, figures.requested_time_seconds);
  EXPECT_LE(figures.lower_bound_joules, figures.energy_joules * (1 + 1e-12));

  perseus_plan_columns columns = {};
  columns.struct_size = sizeof(columns);
  ASSERT_EQ(perseus_plan_get_columns(made.plan.get(), &columns, nullptr), PERSEUS_OK);
  ASSERT_EQ(columns.count, 2U * 2U * 4U);
  std::size_t i = 0;
  for (std::size_t rank = 0; rank < document->ranks.size(); ++rank) {
    for (const PlannedComputation& computation : document->ranks[rank].computations) {
      EXPECT_EQ(columns.rank[i], static_cast<int>(rank));
      EXPECT_EQ(columns.stage[i], computation.id.stage);
      EXPECT_EQ(columns.microbatch[i], computation.id.microbatch);
      EXPECT_EQ(columns.type[i], static_cast<int>(computation.id.type));
      EXPECT_EQ(columns.fused_type[i], -1);
      EXPECT_EQ(columns.clock_mhz[i], computation.knob.number);
      EXPECT_EQ(columns.knob[i], computation.knob.label);
      EXPECT_EQ(columns.start_seconds[i], computation.start_seconds);
      EXPECT_EQ(columns.energy_joules[i], computation.energy_joules);
      ++i;
    }
  }
  EXPECT_EQ(i, columns.count);
}

TEST_F(PlanApi, PlanOutlivesItsPlanner) {
  const MadePlan made = PlanOf(planner(), "");
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  char* before = nullptr;
  ASSERT_EQ(perseus_plan_json(made.plan.get(), &before, nullptr), PERSEUS_OK);
  made_.planner.reset();
  char* after = nullptr;
  ASSERT_EQ(perseus_plan_json(made.plan.get(), &after, nullptr), PERSEUS_OK);
  EXPECT_EQ(Take(before), Take(after));
}

TEST_F(PlanApi, APlanThatIsReadIsThatWhichWasWritten) {
  const MadePlan made = PlanOf(planner(), R"({"at": "1.05x", "granularity": "stage"})");
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  const std::string json = JsonOf(made.plan.get());
  perseus_plan* plan = nullptr;
  ASSERT_EQ(perseus_plan_read(json.data(), json.size(), "saved.json", &plan, nullptr), PERSEUS_OK);
  const PlanHandle read(plan);
  EXPECT_EQ(JsonOf(plan), json);
  ExpectFiguresOfTheFile(plan);
  char* text = nullptr;
  char* message = nullptr;
  EXPECT_EQ(perseus_plan_report(plan, &text, &message), PERSEUS_INVALID);
  EXPECT_EQ(text, nullptr);
  EXPECT_NE(Take(message), "");
  EXPECT_EQ(perseus_plan_read(json.data(), json.size() / 2, "saved.json", &plan, &message),
            PERSEUS_INVALID);
  EXPECT_EQ(plan, nullptr);
  EXPECT_EQ(Take(message).find("saved.json"), 0U);
}

TEST_F(PlanApi, AReportIsThatOfTheLibrary) {
  const auto profile = ParseProfile(kProfile, "profile");
  ASSERT_TRUE(profile);
  JobFile settings;
  settings.schedule = "1f1b";
  settings.microbatches = 4;
  settings.blocking_power_watts = {70};
  settings.at = PlanTarget{PlanTarget::Kind::kBaselineFactor, 1.05};
  const auto job = Job::Make(*profile, settings);
  ASSERT_TRUE(job);
  const auto expected = job->Plan();
  ASSERT_TRUE(expected);
  const auto html = FormatHtmlReport(ReportOf(*job, *expected));
  ASSERT_TRUE(html);
  const MadePlan made = PlanOf(planner(), R"({"at": "1.05x"})");
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  made_.planner.reset();
  char* text = nullptr;
  ASSERT_EQ(perseus_plan_report(made.plan.get(), &text, nullptr), PERSEUS_OK);
  EXPECT_TRUE(Take(text) == *html);
}

TEST_F(PlanApi, BaselineSavesNothing) {
  perseus_plan* plan = nullptr;
  ASSERT_EQ(perseus_planner_baseline(planner(), &plan, nullptr), PERSEUS_OK);
  const PlanHandle handle(plan);
  EXPECT_EQ(FiguresOf(plan).saving_percent, 0);
  EXPECT_EQ(FiguresOf(plan).distinct_knobs, 1);
}

TEST_F(PlanApi, SettingsOfAPlanAreThoseOfAPlanOnly) {
  const MadePlan made = PlanOf(planner(), R"({"microbatches": 8})");
  EXPECT_EQ(made.status, PERSEUS_INVALID);
  EXPECT_EQ(made.message,
            "'microbatches' is of the whole job and cannot be set for one plan; make another "
            "planner");
  EXPECT_EQ(PlanOf(planner(), R"({"at": "0.5x"})").status, PERSEUS_INFEASIBLE);
  EXPECT_EQ(PlanOf(planner(), "[").status, PERSEUS_INVALID);
  EXPECT_EQ(PlanOf(nullptr, "").status, PERSEUS_INVALID);
}

TEST_F(PlanApi, ConstraintsOfAPlanAreInItsFile) {
  const MadePlan made = PlanOf(planner(), R"({"at": "1.1x", "granularity": "stage"})");
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  char* text = nullptr;
  ASSERT_EQ(perseus_plan_json(made.plan.get(), &text, nullptr), PERSEUS_OK);
  const auto document = ParsePlanJson(Take(text), "plan.json");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->constraints.granularity, Granularity::kStage);
  const perseus_plan_figures figures = FiguresOf(made.plan.get());
  EXPECT_EQ(figures.has_shared_knob_bound, 1);
  ExpectFiguresOfTheFile(made.plan.get());
  EXPECT_EQ(figures.knob_changes, 0);
}

TEST_F(PlanApi, CallbackCancels) {
  const MadePlan made = PlanOf(
      planner(), R"({"at": "1.1x"})", [](void*, double) { return 1; }, nullptr);
  EXPECT_EQ(made.status, PERSEUS_CANCELLED);
  EXPECT_EQ(made.plan, nullptr);
}

TEST_F(PlanApi, CallbackSeesTheWorkGrow) {
  double last = 0;
  const MadePlan made = PlanOf(
      planner(), R"({"at": "1.1x"})",
      [](void* user, double share) {
        auto* before = static_cast<double*>(user);
        EXPECT_GE(share, *before - 1e-9);
        EXPECT_LE(share, 1 + 1e-9);
        *before = share;
        return 0;
      },
      &last);
  EXPECT_EQ(made.status, PERSEUS_OK) << made.message;
  EXPECT_GT(last, 0);
}

// More time never costs more, as in the command line's table.
RC_GTEST_PROP(PlanApiRule, NoPlanIsWorseThanANamedOneForLess, ()) {
  const Made made = Create(InputOf(kProfile, kSettings));
  const int permille = *rc::gen::inRange(1000, 1300);
  const std::string at =
      R"({"at": ")" + std::to_string(permille / 1000.0) + R"(x", "effort": 0.01})";
  const MadePlan plan = PlanOf(made.planner.get(), at);
  RC_ASSERT(plan.status == PERSEUS_OK);
  const MadePlan named = PlanOf(made.planner.get(), R"({"at": "1.0x", "effort": 0.01})");
  const auto effective = [](const perseus_plan_figures& figures) {
    return figures.energy_joules - 2 * 70 * figures.iteration_time_seconds;
  };
  const double joules = effective(FiguresOf(named.plan.get()));
  RC_ASSERT(effective(FiguresOf(plan.plan.get())) <= joules + 1e-9 * std::abs(joules));
}

TEST(PlannerApi, SaysItsVersion) {
  EXPECT_EQ(perseus_planner_abi_version(), PERSEUS_PLANNER_ABI_VERSION);
}

TEST(PlannerApi, NothingIsNoInput) {
  perseus_planner* planner = nullptr;
  char* message = nullptr;
  EXPECT_EQ(perseus_planner_create(nullptr, &planner, &message), PERSEUS_INVALID);
  EXPECT_NE(Take(message), "");
  const perseus_planner_input unset = {};
  EXPECT_EQ(perseus_planner_create(&unset, &planner, nullptr), PERSEUS_INVALID);
  const perseus_planner_input input = InputOf(kProfile, kSettings);
  EXPECT_EQ(perseus_planner_create(&input, nullptr, nullptr), PERSEUS_INVALID);
  EXPECT_EQ(planner, nullptr);
  perseus_planner_free(nullptr);
  perseus_plan_free(nullptr);
  perseus_dag_free(nullptr);
  perseus_planner_free_text(nullptr);
}

TEST(PlannerApi, FrontierIsThatOfTheLibrary) {
  const Made made = Create(InputOf(kProfile, kSettings));
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  perseus_frontier frontier = {};
  frontier.struct_size = sizeof(frontier);
  ASSERT_EQ(perseus_planner_frontier(made.planner.get(), &frontier, nullptr), PERSEUS_OK);

  const auto profile = ParseProfile(kProfile, "profile");
  ASSERT_TRUE(profile);
  JobFile settings;
  settings.schedule = "1f1b";
  settings.microbatches = 4;
  settings.blocking_power_watts = {70};
  const auto job = Job::Make(*profile, settings);
  ASSERT_TRUE(job);
  const auto planner = job->MakePlanner();
  ASSERT_TRUE(planner);
  const Frontier& expected = planner->frontier();
  ASSERT_EQ(frontier.count, expected.points.size());
  for (std::size_t k = 0; k < frontier.count; ++k) {
    EXPECT_EQ(frontier.time_seconds[k], expected.points[k].iteration_time_seconds);
    EXPECT_EQ(frontier.energy_joules[k], expected.points[k].energy_joules);
    EXPECT_EQ(frontier.slope_watts[k], expected.points[k].slope_watts);
  }
  EXPECT_EQ(frontier.tstar_seconds, expected.tstar_seconds);
  EXPECT_EQ(frontier.baseline_energy_joules, planner->baseline().energy_joules);
  char* csv = nullptr;
  ASSERT_EQ(perseus_planner_frontier_csv(made.planner.get(), &csv, nullptr), PERSEUS_OK);
  EXPECT_EQ(Take(csv), FormatFrontierCsv(expected));
}

// A caller of an older version knows less of a struct; the rest of his memory stays.
TEST(PlannerApi, AProfileIsGivenBackAsItWasRead) {
  const Made made = Create(InputOf(kProfile, kSettings));
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  char* text = nullptr;
  ASSERT_EQ(perseus_planner_profile_csv(made.planner.get(), &text, nullptr), PERSEUS_OK);
  const auto given = ParseProfile(Take(text), "profile");
  const auto read = ParseProfile(kProfile, "profile");
  ASSERT_TRUE(given && read);
  ASSERT_EQ(given->tables.size(), read->tables.size());
  for (std::size_t t = 0; t < read->tables.size(); ++t) {
    const OptionTable& want = read->tables[t];
    const OptionTable& got = given->tables[t];
    EXPECT_EQ(std::tie(got.stage, got.type), std::tie(want.stage, want.type));
    ASSERT_EQ(got.options.size(), want.options.size());
    for (std::size_t k = 0; k < want.options.size(); ++k) {
      EXPECT_EQ(given->knobs[got.options[k].knob].label, read->knobs[want.options[k].knob].label);
      EXPECT_EQ(got.options[k].time_seconds, want.options[k].time_seconds);
      EXPECT_EQ(got.options[k].energy_joules, want.options[k].energy_joules);
    }
  }
}

TEST(PlannerApi, FillsInWhatTheCallerKnows) {
  const Made made = Create(InputOf(kProfile, kSettings));
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  perseus_frontier frontier;
  std::memset(&frontier, 0x5a, sizeof(frontier));
  frontier.struct_size = offsetof(perseus_frontier, tstar_seconds);
  ASSERT_EQ(perseus_planner_frontier(made.planner.get(), &frontier, nullptr), PERSEUS_OK);
  EXPECT_EQ(frontier.struct_size, offsetof(perseus_frontier, tstar_seconds));
  EXPECT_GT(frontier.min_energy_seconds, 0);
  double untouched = 0;
  std::memset(&untouched, 0x5a, sizeof(untouched));
  EXPECT_EQ(frontier.tstar_seconds, untouched);
  frontier.struct_size = 0;
  EXPECT_EQ(perseus_planner_frontier(made.planner.get(), &frontier, nullptr), PERSEUS_INVALID);
}

TEST(PlannerApi, ErrorsNameTheKeyAndNoPlaceOfTheSettings) {
  const auto sentence = [](std::string_view settings) {
    const Made made = Create(InputOf(kProfile, settings));
    EXPECT_EQ(made.status, PERSEUS_INVALID);
    EXPECT_EQ(made.planner, nullptr);
    return made.message;
  };
  EXPECT_EQ(sentence("{}"), "'schedule', 'microbatches', 'blocking_power' are missing");
  EXPECT_EQ(sentence(R"({"microbatchs": 3})"),
            "unknown key 'microbatchs'; did you mean 'microbatches'?");
  EXPECT_EQ(sentence(R"({"microbatches": 0})"),
            "microbatches: expected a whole number from 1 to 1000000, found 0");
  EXPECT_EQ(
      sentence(R"({"schedule": "1f1b", "microbatches": 4, "blocking_power": 70, "stages": 3})"),
      "'stages' is 3, but profile has 2 stages; 'stages' counts the model's stages (ranks x "
      "virtual stages) and may be left out");
}

TEST(PlannerApi, ErrorsOfAProfileNameItsPlace) {
  perseus_planner_input input =
      InputOf("stage,instruction,frequency,time,energy\n0,forward,x,1,\n", kSettings);
  input.profile_name = "mine.csv";
  const Made made = Create(input);
  EXPECT_EQ(made.status, PERSEUS_INVALID);
  EXPECT_TRUE(made.message.starts_with("mine.csv:2:")) << made.message;
}

TEST(PlannerApi, OneProfileOnly) {
  perseus_planner_input input = InputOf(kProfile, kSettings);
  input.path = "profile.csv";
  EXPECT_EQ(Create(input).message, "more than one profile is given; keep one of them");
  input.profile_csv = nullptr;
  input.path = "/nowhere/profile.csv";
  EXPECT_EQ(Create(input).status, PERSEUS_IO);
  input.path = nullptr;
  EXPECT_EQ(Create(input).message, "'profile' is missing");
}

// Arrays and their CSV are one profile.
TEST(PlannerApi, ArraysAreReadLikeText) {
  const std::array<std::int32_t, 4> stage = {0, 0, 0, 0};
  const std::array<const char*, 4> instruction = {"forward", "forward", "backward", "backward"};
  const std::array<double, 4> clock = {1400, 1000, 1400, 1000};
  const std::array<double, 4> time = {0.1, 0.1 + 0.2, 1.0 / 3, 0.5};
  const std::array<double, 4> energy = {10, 9, 30, 2.0 / 3};
  perseus_profile_arrays arrays = {};
  arrays.struct_size = sizeof(arrays);
  arrays.rows = stage.size();
  arrays.stage = stage.data();
  arrays.instruction = instruction.data();
  arrays.clock_mhz = clock.data();
  arrays.time_seconds = time.data();
  arrays.energy_joules = energy.data();
  perseus_planner_input input = InputOf("", kSettings);
  input.profile_csv = nullptr;
  input.profile_arrays = &arrays;
  const Made made = Create(input);
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  const Made from_text =
      Create(InputOf("stage,instruction,frequency,time,energy\n0,forward,1400,0.1,10\n"
                     "0,forward,1000,0.30000000000000004,9\n0,backward,1400,0.3333333333333333,30\n"
                     "0,backward,1000,0.5,0.6666666666666666\n",
                     kSettings));
  ASSERT_EQ(from_text.status, PERSEUS_OK) << from_text.message;
  char* a = nullptr;
  char* b = nullptr;
  ASSERT_EQ(perseus_planner_frontier_csv(made.planner.get(), &a, nullptr), PERSEUS_OK);
  ASSERT_EQ(perseus_planner_frontier_csv(from_text.planner.get(), &b, nullptr), PERSEUS_OK);
  EXPECT_EQ(Take(a), Take(b));

  arrays.instruction = nullptr;
  EXPECT_EQ(Create(input).status, PERSEUS_INVALID);
  arrays.instruction = instruction.data();
  arrays.knob = instruction.data();
  EXPECT_EQ(Create(input).status, PERSEUS_INVALID);
}

TEST(PlannerApi, ScheduleAsText) {
  constexpr std::string_view kCsv = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  perseus_planner_input input = InputOf(kProfile, R"({"blocking_power": 70})");
  input.schedule_csv = kCsv.data();
  input.schedule_csv_size = kCsv.size();
  EXPECT_EQ(Create(input).status, PERSEUS_OK);
  input.settings_json = kSettings.data();
  input.settings_json_size = kSettings.size();
  EXPECT_EQ(Create(input).message,
            "'schedule' is given twice, by name and as CSV; keep one of them");
  constexpr std::string_view kWrong = R"({"blocking_power": 70, "microbatches": 5})";
  input.settings_json = kWrong.data();
  input.settings_json_size = kWrong.size();
  EXPECT_EQ(Create(input).message,
            "'microbatches' is 5, but schedule has 2 microbatches; with a schedule file it may be "
            "left out");
}

TEST(PlannerApi, CallbackCancels) {
  perseus_planner_input input = InputOf(kProfile, kSettings);
  int calls = 0;
  input.user = &calls;
  input.progress = [](void* user, double share) {
    EXPECT_TRUE(share >= 0 && share <= 1);
    return ++*static_cast<int*>(user);
  };
  const Made made = Create(input);
  EXPECT_EQ(made.status, PERSEUS_CANCELLED);
  EXPECT_NE(made.message, "");
  EXPECT_EQ(calls, 1);  // Once it has said so it is not asked again.
}

// Whatever the texts are, there is a planner or a sentence.
RC_GTEST_PROP(PlannerApi, AnyTextIsAnswered,
              (const std::string& profile, const std::string& json)) {
  const bool mend = *rc::gen::arbitrary<bool>();
  const std::string csv = mend ? std::string(kProfile) + profile : profile;
  const std::string settings = mend ? std::string(kSettings) : json;
  const Made made = Create(InputOf(csv, settings));
  RC_ASSERT((made.status == PERSEUS_OK) == (made.planner != nullptr));
  RC_ASSERT((made.status == PERSEUS_OK) == made.message.empty());
  RC_ASSERT(made.status != PERSEUS_INTERNAL);
}

TEST(PlannerApi, ManyThreadsMayUseOne) {
  const Made made = Create(InputOf(kProfile, kSettings));
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  std::array<std::string, 4> texts;
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      perseus_plan* plan = nullptr;
      const perseus_status status =
          perseus_planner_plan(made.planner.get(), nullptr, 0, nullptr, nullptr, &plan, nullptr);
      const PlanHandle handle(plan);
      char* json = nullptr;
      if (status == PERSEUS_OK) perseus_plan_json(plan, &json, nullptr);
      text = Take(json);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(texts[0], "");
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
}

}  // namespace
}  // namespace perseus::planner_c
