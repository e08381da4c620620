# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Break each rule of a job's life once, and show the seed of the simulation that finds it.

    python tests/server/simulation/broken_rules.py [--build build/release] [--runs 10000]

For each rule the sources of src/server are copied, one place is changed, and the simulation
runs on the result: from seed 1 on, and with the seeds beyond that once found a fault. Where no seed
finds it, the tests of the rules that few seeds meet run. Prints a table. Ends with 1 where a broken
rule is not found, or where its text is not in the sources any more; the other rules are tried all
the same.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# What the rule is, the file, what is there, and what breaks it.
RULES: list[tuple[str, str, str, str]] = [
    (
        "a change is answered after it is durable",
        "runtime/managed_job.cc",
        "  const auto shared = std::make_shared<const Decision>(std::move(decision));",
        "  const auto shared = std::make_shared<const Decision>(std::move(decision));\n"
        "  Settle(operation, AnswerWith(shared->straggler));\n  operation->reply = {};",
    ),
    (
        "a plan is published after it is durable",
        "runtime/managed_job.cc",
        "    is_changing_ = true;\n",
        "    is_changing_ = true;\n    JobLife early = life_;\n"
        "    for (const Fact& fact : decision.facts) Apply(fact, decision.built, &early);\n"
        "    if (IsPublishable(early.phase)) strand_.Then(board_.Publish(\n"
        "        std::make_shared<const PublishedPlan>(PublicationOf(early))));\n",
    ),
    (
        "a change that nobody waits for is not made",
        "runtime/managed_job.cc",
        "const bool is_wanted = !caller.is_wanted || caller.is_wanted();",
        "const bool is_wanted = true;",
    ),
    (
        "the store is told who waits for a change",
        "runtime/managed_job.cc",
        "shared->facts, operation->caller.is_wanted,",
        "shared->facts, {},",
    ),
    (
        "who waited for another's change is carried out after it",
        "runtime/managed_job.cc",
        "  if (is_changing_ || waiting_.empty()) return;",
        "  if (is_changing_ || waiting_.size() < 4) return;",
    ),
    (
        "a change is made only at the revision that its client names",
        "runtime/managed_job.cc",
        "  if (expected && *expected != life_.revision && !life_.phase.is_gone) {",
        "  if (false) {",
    ),
    (
        "sums that the store refused are written later",
        "runtime/managed_job.cc",
        "    sums_.Unwritten(facts);  // Kept for the next time.\n",
        "",
    ),
    (
        "a job that is loaded again goes on with the sums that its server has stored",
        "detect/iteration_sums.cc",
        "  for (const store::IterationSummary& sum : stored.iterations) "
        "sums_[sum.plan_version] = sum;\n",
        "",
    ),
    (
        "rows of the history that the store refused are written later",
        "runtime/managed_job.cc",
        "    history_.Unwritten(facts);\n",
        "",
    ),
    (
        "a job that is loaded again goes on with the history that its server has stored",
        "detect/iteration_history.cc",
        "    entries_[{row.resolution, row.start}] = {.row = row, .stored_size = SizeOf(row)};\n",
        "",
    ),
    (
        "a clock that goes back begins no span again",
        "detect/iteration_history.cc",
        "  now_seconds_ = std::max(now_seconds_, static_cast<std::int64_t>"
        "(std::floor(day_seconds)));\n",
        "  now_seconds_ = static_cast<std::int64_t>(std::floor(day_seconds));\n",
    ),
    (
        "a deletion is told to who waits for a plan",
        "runtime/managed_job.cc",
        "phase.version.version != before.version.version || phase.is_gone != before.is_gone;",
        "phase.version.version != before.version.version;",
    ),
    (
        "a version of the plan is above each that a rank may have seen",
        "domain/decide.cc",
        "  version.version = last + 1;",
        "  version.version = present.version + (present.version > 3 ? 0 : 1);",
    ),
    (
        "a version of the plan is above each that was lost unseen",
        "runtime/managed_job.cc",
        "    highest_version_ = "
        "std::max(highest_version_, context_->history_seconds << kHistoryBits);\n",
        "",
    ),
    (
        "a version that was lost is taken back where there are no plans",
        "domain/decide.cc",
        "if (!has_news && present.version == last) return present;",
        "if (!has_news) return present;",
    ),
    (
        "plans of a profile that was replaced are not adopted",
        "domain/decide_plans.cc",
        "IsOver(phase) || phase.built.curve != step.curve ||",
        "IsOver(phase) ||",
    ),
    (
        "the new version is part of the change that asks for it",
        "domain/decide.cc",
        "  if (version.version != on.phase().version.version) "
        "decision.facts.emplace_back(version);",
        "",
    ),
    (
        "who waits for news is called",
        "runtime/plan_board.cc",
        "plan->gone || entry.second.after < plan->version.version;",
        "plan->gone;",
    ),
    (
        "a job whose last rank came goes on",
        "runtime/managed_job.cc",
        "  RunInternal(Advance{});\n}",
        "  if (life_.ranks.size() % 2 == 1) RunInternal(Advance{});\n}",
    ),
]


def parts(build: Path) -> tuple[str, list[str]]:
    """Return how ninja compiles the room's rules, and how it links the test."""
    commands = subprocess.run(
        ["ninja", "-C", str(build), "-t", "commands", "server_test"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    compile_one = next(c for c in commands if "perseus_server_module.dir/Unity/unity_domain" in c)
    link = next(c for c in commands if "-o tests/server/server_test " in c)
    return compile_one, [
        part for part in link.split(" && ") if "-o tests/server/server_test" in part
    ]


def broken(build: Path, folder: Path, rule: tuple[str, str, str, str]) -> Path | None:
    """Build the test with one rule broken; return its path, or None where its text is not there."""
    _, name, there, instead = rule
    text = (ROOT / "src/server" / name).read_text()
    if text.count(there) != 1:
        return None
    shutil.rmtree(folder / "server", ignore_errors=True)
    shutil.copytree(ROOT / "src/server", folder / "server")
    (folder / "server" / name).write_text(text.replace(there, instead))
    # The rest of the server is as it is: only the part that has the rule is compiled again.
    part = Path(name).parent.name
    compile_one, link = parts(build)
    unity = folder / f"{part}.cc"
    files = sorted((folder / "server" / part).glob("*.cc"))
    unity.write_text("".join(f'#include "{file}"\n' for file in files))
    command = re.sub(r" -MD| -M[TF] \S+", "", compile_one)
    command = re.sub(r" -o \S+ -c \S+", f" -o {unity}.o -c {unity}", command)
    command = command.replace(f"-I{ROOT}/src", f"-I{folder} -I{ROOT}/src", 1)
    # Compiling takes longer than the simulation.
    subprocess.run(command + " -O0 -w", shell=True, check=True, cwd=build)
    command = re.sub(rf"\S+unity_{part}_cxx\S+", "", link[0])
    command = command.replace("-o tests/server/server_test", f"{unity}.o -o {folder}/test")
    subprocess.run(command, shell=True, check=True, cwd=build)
    return folder / "test"


def simulate(test: Path, runs: int) -> tuple[str, str]:
    """Run the simulation; return the seed that broke a rule, and what it said."""
    ran = subprocess.run(
        [str(test), "--gtest_filter=Simulation*", "--gtest_brief=1"],
        env={**os.environ, "PERSEUS_SIMULATION_RUNS": str(runs)},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    seed = re.search(r"PERSEUS_SIMULATION_SEED=(\d+)", ran.stdout)
    said = re.search(r'Which is: "(.*?)(?:\\n.*)?"\n', ran.stdout)
    return (seed[1] if seed else ""), (said[1] if said else "")


def test_that_fails(test: Path) -> str:
    """Return the test of such a rule that fails; empty: none does."""
    ran = subprocess.run(
        [
            str(test),
            "--gtest_filter=ManagedJobTest*:ProfileLifeTest.AStepIsPast*",
            "--gtest_brief=1",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    failed = re.search(r"\[  FAILED  \] (\S+)", ran.stdout)
    return failed[1] if failed else ""


def main() -> int:
    """Break the rules, one after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--only", default="", help="rules with these words")
    given = parser.parse_args()
    print("| rule | seed or test that finds it | it says |\n|---|---|---|", flush=True)
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for rule in RULES:
            if given.only not in rule[0]:
                continue
            test = broken(given.build.resolve(), Path(folder), rule)
            if test is None:
                seed, said = "", f"**its text is not once in {rule[1]}: mend broken_rules.py**"
            else:
                seed, said = simulate(test, given.runs)
                seed = seed or test_that_fails(test)
            missed += not seed
            print(f"| {rule[0]} | {seed or 'NOT FOUND'} | {said[:150]} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
