// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "cli/value_parsers.h"
#include "perseus/schedule.h"

namespace perseus::cli {
namespace {

constexpr int kMostStages = 65536;
constexpr int kMostMicrobatches = 1 << 20;
constexpr int kMostGpus = 1 << 20;

// The CLI11 parser of all commands, and what it cannot hold itself.
class Parser {
 public:
  explicit Parser(Invocation* invocation);

  Result<ParsedCommandLine> Parse(const std::vector<std::string>& arguments, int columns);
  CommandData Describe() const;

 private:
  struct Details {
    ValueKind kind = ValueKind::kText;
    std::vector<std::string> choices;
  };

  void AddPlan();
  void AddFrontier();
  void AddSchedule();
  void AddExplain();
  void AddSynth();
  void AddCompletion();
  void AddMan();

  CLI::App* AddCommand(Command command, const std::string& name, const std::string& description,
                       std::vector<ExampleData> examples);
  void AddInput(CLI::App* app, std::string* target, const std::string& value,
                const std::string& help, Details details = {ValueKind::kFile, {}});
  // An option whose text `set` parses; the parser's error gets the option's name.
  template <typename T, typename Target, typename Read>
  void AddValue(CLI::App* app, Target* target, const std::string& names, const std::string& value,
                const std::string& help, const Read& read);
  void AddCount(CLI::App* app, std::optional<int>* target, const std::string& names,
                const std::string& help, int least, int most);
  void AddText(CLI::App* app, const std::string& names, const std::string& value,
               const std::string& help, const std::function<void(const std::string&)>& set,
               Details details);
  void AddFlag(CLI::App* app, bool* target, const std::string& names, const std::string& help);
  void AddPipelineOptions(CLI::App* app);
  void AddSolverOptions(CLI::App* app);

  void SetGroup(const std::string& group) { group_ = group; }
  CommandData DescribeApp(const CLI::App& app) const;
  std::vector<std::string> CommandNames() const;
  std::vector<std::string> LongNames(const CLI::App& app) const;
  const CLI::App* ParsedCommand() const;
  Error Explain(const CLI::ParseError& error) const;

  CLI::App app_;
  Invocation* invocation_;
  std::string group_ = "Options";
  std::map<const CLI::Option*, Details> details_;
  std::map<const CLI::App*, std::vector<ExampleData>> examples_;
  std::map<const CLI::App*, Command> commands_;
};

Parser::Parser(Invocation* invocation)
    : app_(
          "Plans the cheapest clock for every computation of pipeline-parallel training.\n\n"
          "Perseus reads what each stage of a training pipeline costs at each GPU clock (time and "
          "energy), computes the exact frontier between iteration time and energy, and gives "
          "every computation a clock so that the iteration ends as early as you ask for at the "
          "least energy.",
          "perseus"),
      invocation_(invocation) {
  app_.set_help_flag("-h,--help", "Print this text and end.");
  app_.set_version_flag("--version", std::string(Version()), "Print the version and end.");
  for (CLI::Option* option : app_.get_options()) option->group("Options");
  examples_[&app_] = {
      {"what can be saved, and which clock each computation gets",
       "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 75 -o plan/"},
      {"look at a schedule",
       "perseus schedule zbv-zero-bubble --stages 8 --virtual-stages 2 "
       "--microbatches 8"}};
  AddPlan();
  AddFrontier();
  AddSchedule();
  AddExplain();
  AddSynth();
  AddCompletion();
  AddMan();
}

CLI::App* Parser::AddCommand(Command command, const std::string& name,
                             const std::string& description, std::vector<ExampleData> examples) {
  CLI::App* app = app_.add_subcommand(name, description);
  app->fallthrough(false);
  app->get_help_ptr()->group("Help");
  commands_[app] = command;
  examples_[app] = std::move(examples);
  group_ = "Options";
  return app;
}

void Parser::AddText(CLI::App* app, const std::string& names, const std::string& value,
                     const std::string& help, const std::function<void(const std::string&)>& set,
                     Details details) {
  CLI::Option* option = app->add_option_function<std::string>(names, set, help);
  option->type_name(value)->group(group_)->expected(1);
  details_[option] = std::move(details);
}

template <typename T, typename Target, typename Read>
void Parser::AddValue(CLI::App* app, Target* target, const std::string& names,
                      const std::string& value, const std::string& help, const Read& read) {
  const std::string name = names.substr(names.find("--"));
  AddText(app, names, value, help,
          [target, name, read](const std::string& text) {
            Result<T> parsed = read(text);
            if (!parsed) {
              throw CLI::ValidationError(fmt::format("{}: {}", name, parsed.error().message));
            }
            *target = *std::move(parsed);
          },
          {});
}

void Parser::AddCount(CLI::App* app, std::optional<int>* target, const std::string& names,
                      const std::string& help, int least, int most) {
  AddValue<int>(app, target, names, "N", help,
                [=](std::string_view text) { return ParseCount(text, least, most); });
}

void Parser::AddFlag(CLI::App* app, bool* target, const std::string& names,
                     const std::string& help) {
  CLI::Option* option = app->add_flag(names, *target, help)->group(group_);
  details_[option] = {ValueKind::kNone, {}};
}

void Parser::AddInput(CLI::App* app, std::string* target, const std::string& value,
                      const std::string& help, Details details) {
  // CLI11 wants a name for every positional; people see the value's.
  CLI::Option* option = app->add_option("input", *target, help)->type_name(value)->group("Input");
  details_[option] = std::move(details);
}

void Parser::AddPipelineOptions(CLI::App* app) {
  JobFile* flags = &invocation_->job.overrides;
  AddInput(app, &invocation_->job.input, "PROFILE.csv|JOB.toml|JOB.json",
           "What each computation costs at each clock: the CSV of Zeus and lowtime "
           "(stage,instruction,frequency,time,energy). Or a job file that names the profile and "
           "holds everything that the options can say; an option given here wins over it.");
  SetGroup("Pipeline");
  AddText(
      app, "--schedule", "NAME",
      fmt::format("The pipeline schedule: {}.", fmt::join(ScheduleNames(), ", ")),
      [flags](const std::string& text) {
        const std::optional<std::string> name = CanonicalScheduleName(text);
        if (!name) {
          const std::string nearest = NearestWord(text, ScheduleNames());
          throw CLI::ValidationError(fmt::format(
              "--schedule: there is no schedule '{}'{}; the names are {} (a schedule in a file is "
              "read with --schedule-file)",
              text, nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
              fmt::join(ScheduleNames(), ", ")));
        }
        flags->schedule = *name;
      },
      {ValueKind::kChoice, ScheduleNames()});
  AddText(app, "--schedule-file", "FILE",
          "A schedule in PyTorch's CSV text instead of a name: a row per rank, a cell per action.",
          [flags](const std::string& text) { flags->schedule_file = text; },
          {ValueKind::kFile, {}});
  AddCount(app, &flags->stages, "--stages",
           "Stages of the model = ranks x virtual stages; they must be those of the profile. "
           "Default: the profile's.",
           1, kMostStages);
  AddCount(app, &flags->virtual_stages, "--virtual-stages",
           "Stages that each rank holds (default 1; zbv-zero-bubble and dualpipev need 2).", 1,
           kMostStages);
  AddCount(app, &flags->microbatches, "--microbatches", "Microbatches of one iteration.", 1,
           kMostMicrobatches);
  AddCount(app, &flags->microbatch_group_size, "--microbatch-group-size",
           "megatron-interleaved only: microbatches of a group (default: the number of ranks).", 1,
           kMostMicrobatches);
  SetGroup("Costs");
  AddValue<std::vector<double>>(
      app, &flags->blocking_power_watts, "--blocking-power", "WATTS[,WATTS...]",
      "Power that one GPU draws while it waits: one number, or one for each rank.", ParseWatts);
  AddCount(app, &flags->tensor_parallel, "--tp",
           "GPUs of one rank; energies of a profile without tp_rank column are multiplied by it "
           "(default 1).",
           1, kMostGpus);
  AddCount(app, &flags->data_parallel, "--dp",
           "Pipelines of the job; only the job's total depends on it (default 1).", 1, kMostGpus);
  AddValue<double>(app, &flags->split_ratio, "--split-ratio", "SHARE",
                   "Share of `backward` that is backward_input, where the schedule needs the two "
                   "parts and the profile has only their sum (default 0.5).",
                   [](std::string_view text) {
                     return ParseNumber(text, {0, 1, /*excludes_ends=*/true}, "");
                   });
  AddValue<TimeMargin>(app, &flags->time_margin, "--time-margin", "P%|Nsigma",
                       "Plan with times longer than measured: by a share (1%), by standard "
                       "deviations of the profile's time_std (2sigma), or by the larger of both "
                       "(2sigma,1%).",
                       ParseTimeMargin);
  AddValue<std::vector<double>>(app, &flags->comm_delay_seconds, "--comm-delay", "TIME[,TIME...]",
                                "Transfer between neighbouring stages on different ranks: one for "
                                "all boundaries, or one for each.",
                                ParseDurations);
  AddValue<double>(app, &flags->data_loading_seconds, "--data-loading", "TIME",
                   "Reading a microbatch, before each forward of stage 0.", ParseDuration);
  AddValue<double>(app, &flags->iteration_overhead_seconds, "--iteration-overhead", "TIME",
                   "All-reduce and optimizer, after the last computation.", ParseDuration);
}

void Parser::AddSolverOptions(CLI::App* app) {
  JobFile* flags = &invocation_->job.overrides;
  SetGroup("Solver");
  AddValue<double>(
      app, &flags->coarse_watts, "--coarse", "WATTS|auto",
      "For very large pipelines: a frontier with slopes rounded to multiples of this, with a "
      "certified error. 0 is exact; auto is exact unless the pipeline is very large (default).",
      [](std::string_view text) -> Result<double> {
        if (text == "auto") return -1.0;
        return ParseNumber(text, {0, 1e6}, "watts, or 'auto',");
      });
  AddText(
      app, "--cost-curve", "hull|exponential",
      "How costs are interpolated between clocks: the exact lower hull (default), or the paper's "
      "fit a exp(b t) + c, for comparison.",
      [flags](const std::string& text) {
        if (text != "hull" && text != "exponential") {
          throw CLI::ValidationError(
              fmt::format("--cost-curve: expected hull or exponential, got '{}'", text));
        }
        flags->exponential_fit = text == "exponential";
      },
      {ValueKind::kChoice, {"hull", "exponential"}});
}

void Parser::AddPlan() {
  CLI::App* app = AddCommand(
      Command::kPlan, "plan",
      "Show what can be saved, and write a plan of clocks.\n\n"
      "Reads a profile, computes the exact time-energy frontier of one iteration, and makes real "
      "plans at the points of it that matter. Every plan is replayed on the measured times: the "
      "figures are what it costs, and the gap says how far below it any plan could be. Without -o "
      "nothing is written.",
      {{"what is saved without slowing down, and what a little more time would buy",
        "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64"},
       {"write the plan that may take 2 % longer, with report and timeline",
        "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64 "
        "--at 1.02x -o plan/"},
       {"everything from a job file, but 48 microbatches",
        "perseus plan job.toml --microbatches 48"},
       {"clocks change at most every 50 ms, as JSON",
        "perseus plan job.toml --min-dwell 50ms --json"}});
  AddPipelineOptions(app);
  JobFile* flags = &invocation_->job.overrides;
  SetGroup("Plan");
  AddValue<PlanTarget>(
      app, &flags->at, "--at", "POINT",
      "The point of the plan: 1.02x (times the all-maximum-clock time), seconds, economic (least "
      "energy), fastest, or tstar. Default 1.0x: no slowdown.",
      ParseTarget);
  AddText(
      app, "--granularity", "KIND",
      "What shares one clock: computation (default: nothing), phase (stage, type and warm-up / "
      "steady / cool-down), stage-type, or stage.",
      [flags](const std::string& text) {
        flags->granularity = ParseGranularity(text);
        if (!flags->granularity) {
          throw CLI::ValidationError(fmt::format(
              "--granularity: expected computation, phase, stage-type or stage, got '{}'", text));
        }
      },
      {ValueKind::kChoice, {"computation", "phase", "stage-type", "stage"}});
  AddValue<double>(app, &flags->min_dwell_seconds, "--min-dwell", "TIME",
                   "A rank keeps a clock at least this long before the next change (20ms).",
                   ParseDuration);
  AddCount(app, &flags->max_clocks, "--max-clocks", "Most distinct clocks in the plan.", 1, 1000);
  AddValue<double>(app, &flags->effort, "--effort", "FACTOR",
                   "How much work to search for a plan: 1 (default) is about a second of CPU at 8 "
                   "stages x 96 microbatches.",
                   [](std::string_view text) {
                     return ParseNumber(text, {0.001, 1000}, "");
                   });
  AddSolverOptions(app);
  SetGroup("Output");
  AddText(
      app, "-o,--output", "DIR",
      "Write plan.json, frontier.csv, timeline.json, report.html and the plan file for Zeus into "
      "this folder: all of them or none.",
      [flags](const std::string& text) {
        if (text.empty()) throw CLI::ValidationError("--output: the name of the folder is empty");
        flags->output = text;
      },
      {ValueKind::kDirectory, {}});
  AddFlag(app, &invocation_->json, "--json", "Print one JSON document instead of text.");
}

void Parser::AddFrontier() {
  CLI::App* app = AddCommand(
      Command::kFrontier, "frontier",
      "Compute the time-energy frontier alone.\n\n"
      "Prints the exact lower bound of the energy of one pipeline at every iteration time, about "
      "twenty rows of it as a table, or all breakpoints as CSV "
      "(iteration_time_s,energy_j,slope_w).",
      {{"the curve at a glance",
        "perseus frontier profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64"},
       {"every breakpoint into a file", "perseus frontier job.toml -o frontier.csv"}});
  AddPipelineOptions(app);
  AddSolverOptions(app);
  FrontierFlags* flags = &invocation_->frontier;
  SetGroup("Output");
  AddText(app, "-o,--output", "FILE", "Write all breakpoints to this CSV file.",
          [flags](const std::string& text) {
            if (text.empty()) throw CLI::ValidationError("--output: the name of the file is empty");
            flags->output_file = text;
          },
          {ValueKind::kFile, {}});
  AddFlag(app, &flags->csv, "--csv", "Print all breakpoints as CSV instead of a table.");
  AddFlag(app, &flags->json, "--json", "Print one JSON document instead of text.");
}

void Parser::AddSchedule() {
  CLI::App* app = AddCommand(
      Command::kSchedule, "schedule",
      "Print, validate, convert or draw a pipeline schedule.\n\n"
      "Takes the name of a schedule and its shape, or a file in PyTorch's CSV text (compute_only, "
      "compute_comms, and old files with B and W). Every schedule that is shown has been run to "
      "the end without deadlock.",
      {{"draw a schedule", "perseus schedule 1f1b --stages 4 --microbatches 8"},
       {"write it for PyTorch",
        "perseus schedule interleaved-1f1b --stages 8 --virtual-stages 2 --microbatches 8 "
        "--format csv -o schedule.csv"},
       {"is this file a schedule that ends?", "perseus schedule schedule.csv --validate"}});
  ScheduleFlags* flags = &invocation_->schedule;
  AddInput(app, &flags->input, "NAME|FILE.csv",
           fmt::format("A name ({}), or a file.", fmt::join(ScheduleNames(), ", ")),
           {ValueKind::kChoice, ScheduleNames()});
  SetGroup("Shape of a schedule by name");
  AddCount(app, &flags->stages, "--stages", "Stages of the model = ranks x virtual stages.", 1,
           kMostStages);
  AddValue<int>(app, &flags->virtual_stages, "--virtual-stages", "N",
                "Stages that each rank holds (default 1).",
                [](std::string_view text) { return ParseCount(text, 1, kMostStages); });
  AddCount(app, &flags->microbatches, "--microbatches", "Microbatches of one iteration.", 1,
           kMostMicrobatches);
  AddValue<int>(app, &flags->microbatch_group_size, "--microbatch-group-size", "N",
                "megatron-interleaved only: microbatches of a group.",
                [](std::string_view text) { return ParseCount(text, 1, kMostMicrobatches); });
  SetGroup("Output");
  AddText(app, "--format", "draw|csv|json", "draw (default), PyTorch's csv, or json.",
          [flags](const std::string& text) {
            if (text == "draw") {
              flags->format = ScheduleFormat::kDraw;
            } else if (text == "csv") {
              flags->format = ScheduleFormat::kCsv;
            } else if (text == "json") {
              flags->format = ScheduleFormat::kJson;
            } else {
              throw CLI::ValidationError(
                  fmt::format("--format: expected draw, csv or json, got '{}'", text));
            }
          },
          {ValueKind::kChoice, {"draw", "csv", "json"}});
  AddFlag(app, &flags->validate, "--validate",
          "Only say in one line whether the schedule is valid.");
  AddText(app, "-o,--output", "FILE", "Write to this file instead of standard output.",
          [flags](const std::string& text) {
            if (text.empty()) throw CLI::ValidationError("--output: the name of the file is empty");
            flags->output_file = text;
          },
          {ValueKind::kFile, {}});
}

void Parser::AddExplain() {
  CLI::App* app = AddCommand(
      Command::kExplain, "explain",
      "Say which stage is critical and where the savings of a plan come from.\n\n"
      "Reads a plan.json that `perseus plan -o` wrote, and divides its saving by stage, by type of "
      "computation and by warm-up, steady state and cool-down.",
      {{"explain a plan", "perseus explain plan/plan.json"}});
  AddInput(app, &invocation_->explain.input, "PLAN.json", "The plan.");
  SetGroup("Output");
  AddFlag(app, &invocation_->explain.json, "--json", "Print one JSON document instead of text.");
}

void Parser::AddSynth() {
  CLI::App* app = AddCommand(
      Command::kSynth, "synth",
      "Model a profile where nothing was measured yet.\n\n"
      "Computes time and energy of every stage at every clock from a transformer's shape and an "
      "analytic model of the GPU. The result is modelled, not measured: good to learn what can be "
      "saved, no replacement for a measurement of your job. Without -o the profile is printed.",
      {{"a profile and a job file to plan from",
        "perseus synth --model gpt3-1.3b --gpu a100-sxm --stages 4 --microbatches 16 -o sample/"},
       {"then plan", "perseus plan sample/job.toml"}});
  SynthSpec* spec = &invocation_->synth.spec;
  const auto add_number = [&](std::int64_t* target, const std::string& name,
                              const std::string& help) {
    AddValue<int>(app, target, name, "N", help,
                  [](std::string_view text) { return ParseCount(text, 1, 1 << 30); });
  };
  const auto add_name = [&](std::string* target, const std::string& name, const std::string& value,
                            const std::string& help, std::vector<std::string> choices) {
    Details details{choices.empty() ? ValueKind::kText : ValueKind::kChoice, std::move(choices)};
    AddText(
        app, name, value, help, [target](const std::string& text) { *target = text; },
        std::move(details));
  };
  SetGroup("What to model");
  add_name(&spec->model, "--model", "NAME",
           fmt::format("A built-in model: {}.", fmt::join(SynthModelNames(), ", ")),
           SynthModelNames());
  add_name(&spec->gpu, "--gpu", "NAME",
           fmt::format("The GPU: {}.", fmt::join(SynthGpuNames(), ", ")), SynthGpuNames());
  add_number(&spec->stages, "--stages", "Stages of the model = ranks x virtual stages.");
  add_number(&spec->virtual_stages, "--virtual-stages", "Stages that each rank holds (default 1).");
  add_number(&spec->tensor_parallel, "--tp", "GPUs of one rank (default 1).");
  add_number(&spec->microbatch_size, "--microbatch-size", "Samples of a microbatch (default 1).");
  add_number(&spec->microbatches, "--microbatches",
             "Microbatches of one iteration, for the job file (default: four per rank).");
  add_name(&spec->partition, "--partition", "uniform|balanced|N,N,...",
           "Layers of each stage: balanced (default: the least slowest stage), uniform, or a list.",
           {});
  add_name(&spec->schedule, "--schedule", "NAME",
           "Schedule of the job file (default 1f1b, or interleaved-1f1b with virtual stages).",
           ScheduleNames());
  AddFlag(app, &spec->recompute, "--recompute", "Recompute all activations in the backward.");
  AddValue<double>(app, &spec->efficiency, "--efficiency", "SHARE",
                   "Share of the peak rate that a forward reaches at the highest clock.",
                   [](std::string_view text) {
                     return ParseNumber(text, {0, 1, /*excludes_ends=*/true}, "");
                   });
  add_number(&spec->min_clock_mhz, "--min-clock", "Lowest clock in MHz.");
  add_number(&spec->max_clock_mhz, "--max-clock", "Highest clock in MHz.");
  add_number(&spec->clock_step_mhz, "--clock-step", "Step between clocks in MHz.");
  SetGroup("Shape of the transformer, instead of the model's");
  TransformerShape* shape = &spec->shape;
  add_number(&shape->layers, "--layers", "Layers.");
  add_number(&shape->hidden, "--hidden", "Hidden size.");
  add_number(&shape->heads, "--heads", "Attention heads.");
  add_number(&shape->kv_heads, "--kv-heads", "Key-value heads (default: heads).");
  add_number(&shape->head_dim, "--head-dim", "Size of a head (default: hidden / heads).");
  add_number(&shape->ffn, "--ffn", "Inner size of the feed-forward block (default: 4 x hidden).");
  add_number(&shape->ffn_matrices, "--ffn-matrices",
             "Matrices of the feed-forward block: 2, or 3 where it is gated.");
  add_number(&shape->vocabulary, "--vocabulary", "Tokens of the vocabulary.");
  add_number(&shape->sequence, "--sequence", "Tokens of a sample.");
  SetGroup("Output");
  AddText(app, "-o,--output", "DIR", "Write profile.csv and job.toml into this folder.",
          [this](const std::string& text) {
            if (text.empty())
              throw CLI::ValidationError("--output: the name of the folder is empty");
            invocation_->synth.output_directory = text;
          },
          {ValueKind::kDirectory, {}});
}

void Parser::AddCompletion() {
  CLI::App* app = AddCommand(
      Command::kCompletion, "completion",
      "Print a completion script for a shell.\n\n"
      "The script completes commands, options, schedule names and files.",
      {{"bash, for this session", "source <(perseus completion bash)"},
       {"zsh, for this session", "source <(perseus completion zsh)"},
       {"fish, for good", "perseus completion fish > ~/.config/fish/completions/perseus.fish"}});
  AddInput(app, &invocation_->shell, "bash|zsh|fish", "The shell.",
           {ValueKind::kChoice, {"bash", "zsh", "fish"}});
}

void Parser::AddMan() {
  AddCommand(Command::kMan, "man",
             "Print the man page.\n\n"
             "The page is made from the same data as this text; an installed perseus has it as "
             "perseus(1).",
             {{"read it without installing", "perseus man | man -l -"}});
}

// ---------------------------------------------------------------------------

std::vector<std::string> Parser::CommandNames() const {
  std::vector<std::string> names;
  for (const CLI::App* app : app_.get_subcommands({})) names.push_back(app->get_name());
  return names;
}

std::vector<std::string> Parser::LongNames(const CLI::App& app) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

const CLI::App* Parser::ParsedCommand() const {
  const std::vector<CLI::App*> parsed = app_.get_subcommands();
  return parsed.empty() ? &app_ : parsed.front();
}

CommandData Parser::DescribeApp(const CLI::App& app) const {
  CommandData command;
  command.name = app.get_name();
  const std::string text = app.get_description();
  const std::size_t end = text.find("\n\n");
  command.summary = text.substr(0, end);
  if (command.summary.ends_with('.')) command.summary.pop_back();
  command.description = text;
  const auto examples = examples_.find(&app);
  if (examples != examples_.end()) command.examples = examples->second;
  for (const CLI::Option* option : app.get_options()) {
    OptionData data;
    if (!option->get_snames().empty()) data.short_name = "-" + option->get_snames().front();
    if (!option->get_lnames().empty()) data.long_name = "--" + option->get_lnames().front();
    data.help = option->get_description();
    data.group = option->get_group();
    const auto details = details_.find(option);
    if (details != details_.end()) {
      data.kind = details->second.kind;
      data.choices = details->second.choices;
      if (data.kind != ValueKind::kNone) data.value = option->get_type_name();
    }
    command.options.push_back(std::move(data));
  }
  // The parser declares --help first; people look for it last.
  std::stable_partition(command.options.begin(), command.options.end(),
                        [](const OptionData& option) { return option.long_name != "--help"; });
  return command;
}

CommandData Parser::Describe() const {
  CommandData root = DescribeApp(app_);
  for (const CLI::App* app : app_.get_subcommands({})) root.commands.push_back(DescribeApp(*app));
  return root;
}

// CLI11's exceptions in our words.
Error Parser::Explain(const CLI::ParseError& error) const {
  const CLI::App* command = ParsedCommand();
  const std::string name = command == &app_ ? "perseus" : "perseus " + command->get_name();
  const auto usage = [](std::string message) {
    return Error{ErrorCode::kInvalidInput, std::move(message)};
  };
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return usage(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    for (const std::string& word : app_.remaining(/*recurse=*/true)) {
      if (!word.starts_with('-') || word == "-" || word == "--") continue;
      const std::string flag = word.substr(0, word.find('='));
      const std::string nearest = NearestWord(flag, LongNames(*command));
      return usage(fmt::format("unknown option '{}' of '{}'; {}", flag, name,
                               nearest.empty() ? fmt::format("'{} --help' lists them", name)
                                               : fmt::format("did you mean '{}'?", nearest)));
    }
    const std::vector<std::string> words = app_.remaining(/*recurse=*/true);
    return usage(fmt::format("'{}' takes no further argument '{}'; '{} --help' shows what it takes",
                             name, words.empty() ? "" : words.back(), name));
  }
  std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string option = what.substr(0, what.find(':'));
    return usage(what.find("received") != std::string::npos
                     ? fmt::format("{} is given more than once; keep one of them", option)
                     : fmt::format("{} needs a value; '{} --help' shows which", option, name));
  }
  std::replace(what.begin(), what.end(), '\n', ' ');
  return usage(fmt::format("{} ('{} --help' shows how options are given)", what, name));
}

Result<ParsedCommandLine> Parser::Parse(const std::vector<std::string>& arguments, int columns) {
  ParsedCommandLine parsed;
  const std::vector<std::string> names = CommandNames();
  if (arguments.empty()) {
    return InvalidInput(
        fmt::format("no command given; the commands are {} ('perseus --help' shows "
                    "examples)",
                    fmt::join(names, ", ")));
  }
  const std::string& first = arguments.front();
  if (!first.starts_with('-') && std::find(names.begin(), names.end(), first) == names.end()) {
    const std::string nearest = NearestWord(first, names);
    return InvalidInput(fmt::format("unknown command '{}'; {}", first,
                                    nearest.empty()
                                        ? fmt::format("the commands are {}", fmt::join(names, ", "))
                                        : fmt::format("did you mean '{}'?", nearest)));
  }
  try {
    app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    const CommandData root = Describe();
    const CLI::App* asked = ParsedCommand();
    const auto found =
        std::find_if(root.commands.begin(), root.commands.end(),
                     [&](const auto& each) { return each.name == asked->get_name(); });
    parsed.text = FormatHelp(root, found == root.commands.end() ? nullptr : &*found, columns);
    return parsed;
  } catch (const CLI::CallForVersion&) {
    parsed.text = fmt::format("perseus {}\n", Version());
    return parsed;
  } catch (const CLI::ParseError& error) {
    return tl::unexpected(Explain(error));
  }
  const auto command = commands_.find(ParsedCommand());
  if (command == commands_.end()) {
    return InvalidInput("no command given; 'perseus --help' lists the commands");
  }
  invocation_->command = command->second;
  parsed.invocation = *invocation_;
  return parsed;
}

}  // namespace

std::string_view Version() { return PERSEUS_VERSION; }

Result<ParsedCommandLine> ParseCommandLine(const std::vector<std::string>& arguments, int columns) {
  Invocation invocation;
  Parser parser(&invocation);
  return parser.Parse(arguments, columns);
}

CommandData DescribeCommandLine() {
  Invocation invocation;
  return Parser(&invocation).Describe();
}

}  // namespace perseus::cli
