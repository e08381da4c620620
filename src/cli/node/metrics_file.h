// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_METRICS_FILE_H_
#define PERSEUS_CLI_NODE_METRICS_FILE_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/log.h"
#include "common/mutex.h"
#include "metrics/families.h"
#include "perseus/result.h"

namespace perseus::cli {

// Keeps a file for the textfile collector of Prometheus' node_exporter: a thread of its own writes
// it anew every few seconds. While figures cannot be had, or the file cannot be written, the file
// stays as it was, and the log has event=metrics_failed once. The file is removed at the end: what
// is not there says nothing false.
class MetricsFile {
 public:
  // Is given the time of day, in seconds since 1970.
  using Collect = std::function<Result<metrics::Families>(double now_seconds)>;

  // Says where the name is not one that node_exporter reads. "": no file is wanted.
  static Result<void> Check(const std::string& path);

  // Null: `path` is empty. kIo: it could not be written. `collect` is called on the thread.
  static Result<std::unique_ptr<MetricsFile>> Start(std::string path, Collect collect,
                                                    std::shared_ptr<Log> log);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

 private:
  MetricsFile(std::string path, Collect collect, std::shared_ptr<Log> log);
  void Run();
  Result<void> Write() const;
  bool WaitForEnd();

  const std::string path_;
  const Collect collect_;
  const std::shared_ptr<Log> log_;
  Mutex mutex_;
  ConditionVariable wake_;
  bool must_end_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_METRICS_FILE_H_
