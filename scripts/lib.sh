# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Functions of several scripts. Sourced, never run.

# Bold only on a terminal.
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' plain=$'\e[0m'
else
  bold='' plain=''
fi

heading() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }

say() { printf '%s\n' "$*"; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# takes_no_arguments TEXT ARGUMENT...: shows TEXT for --help, and refuses anything else.
takes_no_arguments() {
  local text=$1
  shift
  if (($# == 0)); then return; fi
  if (($# == 1)) && [[ $1 == --help || $1 == -h ]]; then
    say "$text"
    exit 0
  fi
  printf "%s takes no arguments, found '%s'; './%s --help' says what it does.\n" \
    "$(basename "$0")" "$*" "$(basename "$0")" >&2
  exit 2
}

# quietly LOG COMMAND...: runs COMMAND with its output in LOG, which is shown
# only when it fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    die "this failed (output above, also in $log): $*"
  fi
}

# Configures a preset: configure PRESET [CMAKE_ARGUMENT...]
configure() {
  local preset=$1
  shift
  quietly "build/log/$preset-configure.log" cmake --preset "$preset" "$@"
}

# Builds a preset's folder, with progress on a terminal: build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  local log="build/log/$preset-build.log"
  if [[ -t 1 ]]; then
    cmake --build "build/$preset" ${1:+--target "$@"} </dev/null ||
      die "the build failed; the first error is above."
  else
    say "What the compiler says goes to $log."
    quietly "$log" cmake --build "build/$preset" ${1:+--target "$@"}
  fi
}

# Warnings are errors for us and in CI, not for a user with a newer compiler.
werror() { [[ -n ${CI:-} ]] && echo ON || echo OFF; }

# Compiles through ccache where there is one.
use_ccache() {
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
}

# A Python with the packages of a requirements file, in build/venv:
# make_venv REQUIREMENTS. Does nothing when that was done before.
make_venv() {
  local stamp common=(tests/requirements.txt scripts/requirements-site.txt)
  stamp="build/venv/$(basename "$1").done"
  if [[ -x build/venv/bin/python && -f $stamp ]] && cmp -s <(cat "$1" "${common[@]}") "$stamp"; then
    return
  fi
  say "Installing from PyPI into build/venv: $(grep -hvE '^(#|-r)' "$1" "${common[@]}" | sort -u | tr '\n' ' ')"
  [[ -x build/venv/bin/python ]] || quietly build/log/venv.log python3 -m venv build/venv
  quietly build/log/pip.log build/venv/bin/python -m pip install --quiet \
    --disable-pip-version-check -r "$1"
  cat "$1" "${common[@]}" >"$stamp"
}

# The LLVM version whose compiler and tools are all here (the unversioned
# commands count as version ""): 14 is what the project is developed with.
llvm_suffix() {
  local suffix
  for suffix in -14 -19 -18 -17 -16 -15 ''; do
    if command -v "clang++$suffix" "clang-tidy$suffix" "run-clang-tidy$suffix" >/dev/null &&
      [[ $(command -v "clang++$suffix" "clang-tidy$suffix" "run-clang-tidy$suffix" | wc -l) == 3 ]]; then
      printf '%s' "$suffix"
      return
    fi
  done
  die "clang++, clang-tidy and run-clang-tidy of one version are needed; run scripts/install-deps --dev."
}

# clang-format: the version decides the result, so 14 first.
clang_format() {
  local suffix
  for suffix in -14 -15 -16 -17 -18 -19 ''; do
    if command -v "clang-format$suffix"; then return; fi
  done
  die "clang-format is needed; run scripts/install-deps --dev."
}

# The output of each failed test, from ctest's log.
test_failures() {
  awk '/^ +Start +[0-9]+: / {show = 0}
       /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {show = /\*\*\*/ && !/\*\*\*(Skipped|Not Run)/}
       /% tests passed/ {show = 1}
       show' "$1"
}

# run_ctest PRESET [ARGUMENT...]: passes the tests of a build. Many tests are of processes and
# threads, and a busy machine may starve one of them beyond its patience. Such a test passes alone,
# and is a fault to be found all the same: what failed runs once more, one at a time, and is named.
# A sanitizer's finding is no matter of patience. One test more than there are cores: many wait.
run_ctest() {
  local log=build/log/$1-ctest.log again=build/log/$1-ctest-again.log
  local command=("${fixed_addresses[@]}" ctest --preset "$1")
  shift
  mkdir -p build/log
  if "${command[@]}" --parallel "$(($(nproc) + 1))" "$@" </dev/null >"$log" 2>&1; then
    grep -E 'tests passed' "$log"
    return
  fi
  test_failures "$log" >&2
  if grep -q -E 'ERROR: [A-Za-z]+Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$log"; then
    die "a sanitizer found a fault; all output is in $log."
  fi
  say "Some tests failed. They run once more, one at a time."
  if "${command[@]}" --rerun-failed --parallel 1 </dev/null >"$again" 2>&1; then
    grep -E 'tests passed' "$again"
    say "FLAKY: the tests above failed once and passed alone. Please report them: $log."
  else
    test_failures "$again" >&2
    die "some tests failed twice; all output is in $log and $again."
  fi
}

# Address space randomisation can place a program where ThreadSanitizer's shadow memory has to be:
# checks of sanitizers set this.
fixed_addresses=()
