#include <fmt/format.h>
#include <chrono>
#include <cstdlib>
#include <string>
#include "perseus/emulator.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "robust/clock_search.h"
#include "robust/dual_bound.h"
#include "robust/price_path.h"
#include "robust/exact_replay.h"
using namespace perseus;
using namespace perseus::robust;
struct Fixed : Policy {
  Plan plan;
  std::string_view name() const override { return "fixed"; }
  bool reacts() const override { return false; }
  Result<Plan> PlanFor(double) const override { return plan; }
};
struct F { double t, e, calls, late; };
F Emu(const Planner& pl, const Plan& p, const Conditions& c, int seeds, int iters) {
  F f{};
  for (int s = 0; s < seeds; ++s) {
    auto e = ReplayJob(pl.pipeline(), p.options, c, 1, iters, 1000 + s);
    double n = (double)seeds * iters;
    for (double x : e.seconds) f.t += x / n;
    for (double x : e.joules) f.e += x / n;
    f.calls += e.clock_calls / seeds;
  }
  return f;
}
F Emu0(const Planner& pl, const Plan& p, const Conditions& c, int seeds, int iters) {
  F f{};
  for (int s = 0; s < seeds; ++s) {
    EmulationSpec spec; spec.iterations = iters; spec.noise = c.noise; spec.switching = c.switching;
    spec.seed = 1000 + s; spec.target_seconds = pl.baseline().iteration_time_seconds;
    Fixed pol; pol.plan = p;
    auto e = Emulate(pl, pol, spec);
    if (!e) { fmt::print("{}\n", e.error().message); exit(1); }
    double n = (double)seeds * iters;
    f.t += e->time_seconds / n; f.e += e->energy.total_joules() / n; f.calls += e->clock_calls / n; f.late += e->late_computations / n;
  }
  return f;
}
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
int main(int argc, char** argv) {
  std::string which = argv[1]; int mb = atoi(argv[2]); double lat = atof(argv[3]); double noise = atof(argv[4]);
  auto mode = *ParseCallAhead(argv[5]); double slow = atof(argv[6]); int lanes = atoi(argv[7]); double moves = atof(argv[8]);
  std::vector<int> levels; for (int k = 9; k < argc; ++k) levels.push_back(atoi(argv[k]));
  std::string dir = std::string(getenv("PERSEUS_SHARED_DATA")) + "/sosp24/sosp24_data/emulation/stage_profile/";
  auto profile = ReadProfile(dir + (which == "gpt" ? "gpt3-175b+a100_sxm_bf16.csv" : "bloom+a40_bf16.csv"));
  ScheduleSpec ss; ss.name = "1f1b"; ss.num_stages = 8; ss.num_microbatches = mb;
  auto dag = BuildDag(*BuildSchedule(ss), {});
  CostSpec cs; cs.blocking_power_watts = {which == "gpt" ? 83.64 : 70.38}; cs.tensor_parallel = 8;
  auto costed = CostPipeline(*profile, *dag, cs);
  auto planner = Planner::Create(*costed, {});
  const CostedPipeline& P = planner->pipeline();
  Conditions c; c.noise.per_computation = noise; c.switching.latency_seconds = lat; c.switching.call_ahead = mode; c.max_slowdown = slow;
  const double tb = planner->baseline().iteration_time_seconds;
  F base = Emu(*planner, planner->baseline(), c, 5, noise > 0 ? 200 : 3);
  auto show = [&](const char* what, const Plan& p) {
    F f = Emu(*planner, p, c, 5, noise > 0 ? 200 : 3);
    fmt::print("{}: saving {:.3f} slowdown {:.4f} calls {:.1f} late {:.1f}\n", what, 100 * (1 - f.e / base.e), 100 * (f.t / base.t - 1), f.calls, f.late);
  };
  auto paper = planner->PlanFor(tb, {}, 0.2);
  fmt::print("paper {:.3f} gap {:.3f}; bound at accepted {:.3f}\n", paper->saving_percent, paper->gap_percent, 100 * (1 - planner->lower_bound().EnergyAt(tb * (1 + slow)) / planner->baseline().energy_joules));
  show("paper", *paper);
  Samples samples = DrawSamples(P, c.noise, 1, lanes, 42);
  Samples check = DrawSamples(P, c.noise, 1, noise > 0 ? 256 : 1, 43);
  LaneReplay replay(P, c.switching, samples), checker(P, c.switching, check);
  std::vector<int> knobs; for (auto& o : planner->baseline().options) knobs.push_back(o.knob);
  replay.Reset(knobs); checker.Reset(knobs);
  auto b = replay.figures(), bc = checker.figures();
  SearchGoal goal; goal.accepted_seconds = b.seconds * (1 + slow); goal.waiting_watts = P.total_blocking_power_watts;
  // slope
  double slope = 0; for (auto& pt : planner->lower_bound().points) { slope = pt.slope_watts; if (pt.iteration_time_seconds > tb * (1 + slow)) break; }
  goal.price_of_time = std::max(1.0, slope - goal.waiting_watts);
  double total_b = b.effective_joules + goal.waiting_watts * b.seconds;
  fmt::print("base {:.4f} s model {:.4f} s nominal {:.4f} s; slope {:.0f} W energy {:.0f} J\n", base.t, b.seconds, tb, slope, total_b);
  DualBound dual; if (getenv("ROUNDS")) for (double l : {0.0, noise > 0 || mode != CallAhead::kNone ? 0.0 : lat}) {
    double t0 = now();
    auto d = BoundByPrices(P, samples, goal.accepted_seconds, l, atoi(getenv("ROUNDS")));
    dual = d; fmt::print("dual bound {:.3f} price {:.0f} {:.1f}s\n", 100 * (1 - (d.effective_joules + goal.waiting_watts * goal.accepted_seconds) / total_b), d.price_of_time, now() - t0);
  }
  ClockSearch search(P, &replay, 7);
  Chosen best; best.knobs = knobs;
  for (int level : levels) {
    goal.most_changes = level;
    replay.Reset(best.knobs);
    if (getenv("DPSTART")) { replay.Reset(CheapestKnobsWithin(P, dual.price, level)); goal.price_of_time = dual.price_of_time - goal.waiting_watts;
      auto f = replay.figures(); fmt::print("start changes {} saving {:.3f} slow {:.4f}\n", f.changes, 100 * (1 - (f.effective_joules + goal.waiting_watts * f.seconds) / total_b), 100 * (f.seconds / b.seconds - 1)); }
    double t0 = now();
    double unit = total_b / P.dag.size();
    Chosen got = search.Anneal(goal, {(int64_t)(moves*1e6), unit * atof(getenv("HOT")), unit * atof(getenv("COLD"))});
    if (!got.knobs.empty()) best = got;
    checker.Reset(best.knobs);
    auto f = checker.figures();
    fmt::print("level {} ({:.1f} s): changes {} search saving {:.3f} slow {:.4f} price {:.0f}; check saving {:.3f} slow {:.4f}\n", level, now() - t0, best.figures.changes,
       100 * (1 - best.joules / total_b), 100 * (best.figures.seconds / b.seconds - 1), search.price_of_time(),
       100 * (1 - (f.effective_joules + goal.waiting_watts * f.seconds) / (bc.effective_joules + goal.waiting_watts * bc.seconds)), 100 * (f.seconds / bc.seconds - 1));
    std::vector<CostOption> o; for (int i = 0; i < P.dag.size(); ++i) for (auto& x : P.TableOf(i).all_options) if (x.knob == best.knobs[i]) o.push_back(x);
    show("  emulated", planner->Evaluate(o));
    fflush(stdout);
  }
  if (getenv("SHOW")) for (int r = 0; r < 8; ++r) { fmt::print("rank {}:", r); int last = -1, n = 0; for (int i : P.dag.rank_order[r]) { if (best.knobs[i] != last) { if (n) fmt::print(" {}x{}", last, n); last = best.knobs[i]; n = 0; } ++n; } fmt::print(" {}x{}\n", last, n); }
}
