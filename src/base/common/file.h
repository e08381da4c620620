// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_FILE_H_
#define PERSEUS_COMMON_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/result.h"

namespace perseus {

// All functions here are thread-safe: they keep no state of their own.

// The bytes of a regular file. Errors (kIo): missing, not permitted, a
// directory, a pipe or a device. A file of more than `max_bytes` is
// kInvalidInput, and at most `max_bytes` + 1 of it are read.
Result<std::string> ReadWholeFile(const std::string& path, std::size_t max_bytes);

// The same, and also all that is written into a pipe (a named one, /dev/stdin,
// a shell's `<(zcat profile.csv.gz)`). One that nobody opens for writing within
// two seconds is kIo. Terminals and other devices are refused: they need not end.
Result<std::string> ReadWholeFileOrPipe(const std::string& path, std::size_t max_bytes);

// Replaces `path` by a file with these bytes, or leaves everything as it was:
// writes a temporary file beside it, flushes it to the disk, renames it. The new
// file has the permissions of a newly made one, not those of the file it replaces.
// Errors (kIo) name the path and the reason.
Result<void> WriteFileAtomically(const std::string& path, std::string_view bytes);

// One file of a set.
struct OutputFile {
  std::string name;  // Base name, without a directory.
  std::string bytes;
};

// Writes a set of files into `directory`, which is made (with its parents)
// where missing: all of them or none, also where the disk is full, a permission
// is missing or the program is killed. A signal that asks the program to end
// waits until the set is whole, or until it is cleaned away; it is held in the
// calling thread only, so that programs with more threads block it in those.
// Of a program that is killed while files go to their places the next call for
// this directory finishes the work, and sweeps what it left under temporary
// names. Where a file cannot be moved to its place the others are taken back;
// on a file system without hard links they may stay, and the error says so.
Result<void> WriteFilesAtomically(const std::string& directory,
                                  const std::vector<OutputFile>& files);

// Whether a file, or a set of files, could be written now: to know before long
// work. Errors are those of writing. Nothing is made; where a killed program
// left a set half-way to its places, it is put there.
Result<void> CheckWritable(const std::string& path);
Result<void> CheckWritable(const std::string& directory, const std::vector<std::string>& names);

}  // namespace perseus

#endif  // PERSEUS_COMMON_FILE_H_
