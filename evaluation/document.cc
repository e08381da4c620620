// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "evaluation/plots.h"
#include "evaluation/report.h"
#include "evaluation/tables.h"

namespace perseus::sosp24 {
namespace {

using report::Document;
using report::Table;

void AddIntroduction(const std::string& command, Document* document) {
  document->Paragraph(
      "The evaluation of the Perseus paper (Chung et al., SOSP'24), recomputed from its public "
      "artifact (repository ml-energy/zeus, branch kronos, folder sosp24_data), with the plans of "
      "this program on the same data beside it. Made by:");
  document->Code(command);
  document->Paragraph("Three kinds of numbers stand side by side and are not alike:");
  document->List(
      {"Published: the output of the paper's planner, and of EnvPipe, on measured profiles, as the "
       "artifact holds it. Nobody ran these jobs; they are emulations.",
       "Measured: iteration times and energies of real jobs (Tables 3 and 4, Figure 9).",
       "Ours: plans of this program on the same profiles, replayed by the code that states the "
       "time "
       "of every plan. For the real jobs they are predictions, on profiles whose energies were "
       "fitted to the measured energy of each rank."});
  document->Paragraph(
      "Savings are in percent of the baseline's energy, differences in percentage points; a "
      "negative difference means that ours is worse. A bound is the least energy that any plan "
      "of that time can use. In HTML more digits are under the pointer.");
}

void AddTable6(const Sosp24Evaluation& evaluation, Document* document) {
  if (evaluation.emulations.empty()) return;
  document->Heading("Table 6: savings without stragglers, emulated");
  document->Paragraph(
      "Tensor parallel 8, 8 stages, 1F1B, 1,536 microbatches over all pipelines. T is the least "
      "time of the published frontier. The baseline runs every computation at its highest clock "
      "and "
      "waits until T. The published planner rounds times down to its unit step, so T can be "
      "shorter "
      "than what any plan can realise (T_min); then no plan of ours can be held against it. A "
      "published energy at such a rounded time can also lie below the true bound.");
  document->Put(Table6AtPublished(evaluation));
  document->Paragraph(
      "T_max is the time of the baseline itself, replayed; a plan can always realise it. Here our "
      "plans, and the bound, are against the baseline at T_max. The published planner stands here "
      "twice: at T, as the paper prints it, and at T_max, with its best point within that time. "
      "Where that is above the bound, no clocks can do it: its points promise more than a replay "
      "of their clocks would give.");
  document->Put(Table6AtMaxClocks(evaluation));
}

// How ours stands to what was published and to the bound, at all slowdowns.
std::string OursInAllSituations(const std::vector<Sosp24Straggler>& rows) {
  std::size_t less = 0;
  std::size_t unreal = 0;  // Of those: the published saving is above the bound.
  double rest = 0;
  double gap = 0;
  for (const Sosp24Straggler& row : rows) {
    gap = std::max(gap, row.bound_job_percent - row.ours_job_percent);
    if (row.ours_job_percent >= row.published_job_percent) continue;
    ++less;
    if (row.published_job_percent > row.bound_job_percent) {
      ++unreal;
    } else {
      rest = std::max(rest, row.published_job_percent - row.ours_job_percent);
    }
  }
  std::string text = fmt::format(
      "Ours is at most {:.2f} points below the bound in all {} situations, and below the "
      "published saving in {}",
      gap, rows.size(), less);
  if (less == 0) return text + ".";
  text += fmt::format(": in {} of these the published saving is above the bound", unreal);
  if (unreal < less)
    text += fmt::format(", in the others ours is {:.2f} points less at most", rest);
  return text +
         ". A published saving above the bound rests on times that the published planner "
         "rounded down: no plan realises it.";
}

// What a linear program allows where T can be realised, and how near ours is.
std::string OursAtMaxClocks(const std::vector<Sosp24Straggler>& rows) {
  double gap = 0;
  int compared = 0;
  for (const Sosp24Straggler& row : rows) {
    if (!row.ours_max_clock_job_percent || !row.bound_max_clock_job_percent) continue;
    gap = std::max(gap, *row.bound_max_clock_job_percent - *row.ours_max_clock_job_percent);
    ++compared;
  }
  if (compared == 0) return "";
  return fmt::format(
      "Two columns take another T: the all-maximum-clock time T_max, for the baseline and for "
      "ours, because plans can realise it. The bound at T_max is what a linear program allows "
      "there; ours is at most {:.2f} points below it.",
      gap);
}

void AddFigures7And8(const Sosp24Evaluation& evaluation, Document* document) {
  const std::vector<Sosp24Straggler>& rows = evaluation.stragglers;
  if (rows.empty()) return;
  const auto best = std::count_if(rows.begin(), rows.end(), [](const Sosp24Straggler& row) {
    return row.rules_are_brute_force_best;
  });
  document->Heading("Figure 7: one pipeline slower by 1.2, emulated");
  document->Paragraph(
      "The straggling pipeline uses its own energy times the slowdown; the others choose a plan "
      "that ends in time and wait at blocking power for the rest. The paper takes the point of "
      "least total energy, which stops at T_economic. The wait is paid anyway, so the point of "
      "least effective energy (energy less blocking power times time) is the right one; both rules "
      "are shown on the published frontier. \"Pipeline\" is one that does not straggle. All is at "
      "the T of Table 6, where nothing else is said. Where that T is below T_min, the straggling "
      "pipeline of ours, and of the bound, is charged the energy at T_min.");
  if (const std::string text = OursAtMaxClocks(rows); !text.empty()) document->Paragraph(text);
  document->Paragraph(
      fmt::format("In {} of {} situations (all slowdowns of Figure 8) both rules choose what "
                  "trying every point "
                  "of the published frontier finds best.",
                  best, rows.size()));
  document->Put(Figure7(evaluation));
  document->Figure(DrawFigure7(evaluation));
  const Table envpipe = Figure7EnvPipe(evaluation);
  if (!envpipe.rows.empty()) {
    document->Paragraph(
        "EnvPipe cannot slow down: its pipelines wait. The artifact counts that waiting for one "
        "pipeline more than there are instead of one less, and from T on; the protocol says one "
        "less, from EnvPipe's own time on. Both ways are shown.");
    document->Put(envpipe);
  }
  document->Heading("Figure 8: savings over the slowdown of the straggler, emulated");
  document->Paragraph("Of the whole job, at the T of Table 6. " + OursInAllSituations(rows) +
                      " The HTML page of this evaluation has a plot of every slowdown for each "
                      "case.");
  document->Put(Figure8(evaluation));
  document->Figure(DrawFigure8(evaluation));
}

void AddEnvPipe(const Sosp24Evaluation& evaluation, Document* document) {
  const Table table = EnvPipePolicy(evaluation);
  if (table.rows.empty()) return;
  document->Heading("EnvPipe: our policy against the published results");
  document->Paragraph(
      "The policy envpipe of this program, which follows the published description, against what "
      "EnvPipe's authors' code made of the same pipelines. Savings are against the baseline at T; "
      "a positive difference means that our policy saves more than the published result.");
  document->Put(table);
}

void AddJobs(const Sosp24Evaluation& evaluation, Document* document) {
  if (!evaluation.jobs.empty()) {
    document->Heading("Table 3: savings without stragglers, real jobs");
    document->Paragraph(
        "Measured savings are recomputed: time is the greatest over ranks, energy the sum, the "
        "mean "
        "of all iterations but the first two; against the run of ZeusGlobal with the highest power "
        "limit. A slowdown below 0 counts as 0, as in the paper. Our column is predicted, on a "
        "profile whose energies are fitted, not measured, against maximum clocks on the same "
        "profile. It holds only the clocks that the published plans used. So its difference to a "
        "measured saving is the planners' and the model's together. The last columns tell them "
        "apart where the clocks of the published plan are there: that plan, predicted as ours is.");
    document->Put(Table3(evaluation));
    std::string summarised;
    for (const Sosp24Job& job : evaluation.jobs) {
      if (!job.summarised) continue;
      summarised += fmt::format("{}{} on {}", summarised.empty() ? "" : "; ", job.model, job.gpu);
    }
    if (!summarised.empty()) {
      document->Paragraph(
          fmt::format("From a summary of the measurements, not from raw runs: {}.", summarised));
    }
  }
  if (!evaluation.job_stragglers.empty()) {
    document->Heading("Table 4: savings with a straggler, real jobs");
    document->Paragraph(
        "An iteration lasts as long as the straggler; whoever ends earlier waits at blocking "
        "power. Measured: the slowest plan that ends in time, and its waiting. Ours is predicted "
        "as in Table 3, so the differences hold the model's error, too, and can have either sign.");
    document->Put(Table4(evaluation));
  }
  const Table errors = ReplayErrors(evaluation);
  if (!errors.rows.empty()) {
    document->Heading("Emulated against measured iteration time and energy");
    document->Paragraph(
        "The published plans, replayed by this program on the derived profile, against the "
        "iteration times and energies measured with the same plans. Below 0 the replay is faster, "
        "or takes less: it has no communication and no optimizer step.");
    document->Put(errors);
  }
  if (evaluation.jobs.empty()) return;
  document->Heading("Figure 9: energy over iteration time, real jobs");
  document->Paragraph(
      "Changes of measured points are against the measured baseline, of predicted ones against "
      "maximum clocks on the derived profile. The HTML page of this evaluation has the plots.");
  int number = 0;
  for (const Sosp24Job& job : evaluation.jobs) {
    document->Paragraph(
        fmt::format("{} on {}, {}: {} microbatches of {}.", job.model, job.gpu,
                    job.layout.empty() ? fmt::format("{} stages", job.stages) : job.layout,
                    job.microbatches, job.microbatch_size));
    document->Put(Figure9(job));
    document->Figure(DrawFigure9(job, ++number));
  }
}

}  // namespace

Document EvaluationDocument(const Sosp24Evaluation& evaluation, const std::string& command) {
  Document document;
  document.title = "Evaluation: the Perseus paper, recomputed";
  AddIntroduction(command, &document);
  AddTable6(evaluation, &document);
  AddFigures7And8(evaluation, &document);
  AddEnvPipe(evaluation, &document);
  AddJobs(evaluation, &document);
  const Table times = RunTimes(evaluation);
  if (!times.rows.empty()) {
    document.Heading("Run time of the planner");
    document.Paragraph(
        "CPU time of this program on the machine that made this page, for one pipeline.");
    document.Put(times);
  }
  if (!evaluation.missing.empty()) {
    document.Heading("What is missing");
    document.Paragraph("What could not be recomputed from the folder that was given:");
    document.List(evaluation.missing);
  }
  return document;
}

std::string FormatEvaluationMarkdown(const Sosp24Evaluation& evaluation,
                                     const std::string& command) {
  return report::MarkdownOf(EvaluationDocument(evaluation, command));
}

std::string FormatEvaluationHtml(const Sosp24Evaluation& evaluation, const std::string& command) {
  return report::HtmlOf(EvaluationDocument(evaluation, command));
}

}  // namespace perseus::sosp24
