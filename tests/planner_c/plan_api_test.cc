// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
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

}  // namespace
}  // namespace perseus::planner_c
