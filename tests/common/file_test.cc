// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/file_descriptor.h"
#include "common/temporary_directory.h"

namespace perseus {
namespace {

constexpr std::size_t kLimit = 1 << 20;

std::string ReadError(const std::string& path, std::size_t limit = kLimit) {
  const Result<std::string> bytes = ReadWholeFile(path, limit);
  return bytes ? "read " + std::to_string(bytes->size()) + " bytes" : bytes.error().message;
}

TEST(ReadWholeFile, GivesEveryByte) {
  const TemporaryDirectory directory;
  std::string bytes(300'000, 'x');
  bytes[7] = '\0';
  bytes[200'000] = '\n';
  directory.Put("file", bytes);
  const Result<std::string> read = ReadWholeFile(directory.Path("file"), kLimit);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(*read == bytes);
}

TEST(ReadWholeFile, ReadsUpToTheLimitAndNotBeyond) {
  const TemporaryDirectory directory;
  directory.Put("file", "12345");
  EXPECT_EQ(ReadError(directory.Path("file"), 5), "read 5 bytes");
  EXPECT_EQ(ReadError(directory.Path("file"), 4),
            directory.Path("file") +
                ": is larger than the 4 bytes that such a file may have; is it the right file?");
}

TEST(ReadWholeFile, RefusesAGiantFileWithoutReadingIt) {
  const TemporaryDirectory directory;
  directory.Put("file", "");
  ASSERT_EQ(::truncate(directory.Path("file").c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(ReadError(directory.Path("file")),
            directory.Path("file") +
                ": is larger than the 1 MiB that such a file may have; is it the right file?");
}

// Files of /proc state a size of 0.
TEST(ReadWholeFile, DoesNotTrustTheStatedSize) {
  const Result<std::string> read = ReadWholeFile("/proc/self/status", kLimit);
  ASSERT_TRUE(read.has_value());
  EXPECT_FALSE(read->empty());
  const Result<std::string> bounded = ReadWholeFile("/proc/self/status", 10);
  ASSERT_FALSE(bounded.has_value());
  EXPECT_EQ(bounded.error().code, ErrorCode::kInvalidInput);
}

TEST(ReadWholeFile, ReadsAnEmptyFile) {
  const TemporaryDirectory directory;
  directory.Put("file", "");
  EXPECT_EQ(ReadError(directory.Path("file")), "read 0 bytes");
}

TEST(ReadWholeFile, SaysWhatIsInTheWay) {
  const TemporaryDirectory directory;
  directory.Put("file", "");
  EXPECT_EQ(ReadError(""), "the name of the file to read is empty");
  EXPECT_EQ(ReadError(directory.Path("none")),
            directory.Path("none") + ": cannot read: there is no such file; check the path");
  EXPECT_EQ(ReadError(directory.Path("file/below")),
            directory.Path("file/below") + ": cannot read: there is no such file; check the path");
  EXPECT_EQ(ReadError(directory.Path()),
            directory.Path() + ": cannot read: it is a directory; name a file in it");
  EXPECT_EQ(ReadError("/dev/zero"),
            "/dev/zero: cannot read: it is a device; expected a regular file");
  ASSERT_EQ(::symlink("loop", directory.Path("loop").c_str()), 0);
  EXPECT_EQ(ReadError(directory.Path("loop")),
            directory.Path("loop") + ": cannot read: its symbolic links lead in a circle");
}

// A pipe without a writer would make a plain open() wait for ever.
TEST(ReadWholeFile, DoesNotWaitForAPipe) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo(directory.Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(
      ReadError(directory.Path("pipe")),
      directory.Path("pipe") + ": cannot read: it is a pipe; save its contents to a file first");
}

class ReadWholeFileOrPipeTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0); }

  // The text that is read while `bytes` are written in two parts with a pause between.
  Result<std::string> ReadWhatIsWritten(const std::string& bytes, std::size_t limit = kLimit) {
    std::thread writer([&] {
      const int fd = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      Write(fd, bytes.substr(0, bytes.size() / 2));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      Write(fd, bytes.substr(bytes.size() / 2));
      ::close(fd);
    });
    Result<std::string> read = ReadWholeFileOrPipe(path_, limit);
    writer.join();
    return read;
  }

  static void Write(int fd, const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::write(fd, bytes.data() + done, bytes.size() - done);
      if (count < 0) return;  // The reader has had enough.
      done += static_cast<std::size_t>(count);
    }
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.Path("pipe");
};

// More than a pipe holds at once.
TEST_F(ReadWholeFileOrPipeTest, GivesEveryByteOfAPipe) {
  const std::string bytes(300'000, 'x');
  const Result<std::string> read = ReadWhatIsWritten(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(*read == bytes);
}

TEST_F(ReadWholeFileOrPipeTest, IsBounded) {
  ASSERT_NE(::signal(SIGPIPE, SIG_IGN), SIG_ERR);
  const Result<std::string> read = ReadWhatIsWritten(std::string(300'000, 'x'), 100);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidInput);
}

TEST_F(ReadWholeFileOrPipeTest, DoesNotWaitForEver) {
  const Result<std::string> read = ReadWholeFileOrPipe(path_, kLimit);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("into which nobody writes"), std::string::npos);
}

TEST_F(ReadWholeFileOrPipeTest, ReadsFilesAndRefusesDirectoriesAndDevices) {
  directory_.Put("file", "12345");
  EXPECT_EQ(ReadWholeFileOrPipe(directory_.Path("file"), kLimit).value_or(""), "12345");
  EXPECT_FALSE(ReadWholeFileOrPipe(directory_.Path(), kLimit));
  EXPECT_FALSE(ReadWholeFileOrPipe("/dev/zero", kLimit));
}

TEST(ReadWholeFile, SaysThatPermissionIsMissing) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may read everything";
  const TemporaryDirectory directory;
  directory.Put("file", "secret");
  ASSERT_EQ(::chmod(directory.Path("file").c_str(), 0), 0);
  EXPECT_EQ(ReadError(directory.Path("file")),
            directory.Path("file") +
                ": cannot read: permission denied; make the file readable for this user");
}

using Names = std::vector<std::string>;

// While it lives, no file can grow beyond `bytes`: writes fail half-way, as on
// a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit = {bytes, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int) = nullptr;
};

std::string Message(const Result<void>& result) {
  return result ? "written" : result.error().message;
}

TEST(WriteFileAtomically, WritesAndReplaces) {
  const TemporaryDirectory directory;
  std::string bytes = "first\n";
  bytes[2] = '\0';
  EXPECT_EQ(Message(WriteFileAtomically(directory.Path("file"), bytes)), "written");
  EXPECT_TRUE(directory.Get("file") == bytes);
  EXPECT_EQ(Message(WriteFileAtomically(directory.Path("file"), "second")), "written");
  EXPECT_EQ(directory.Get("file"), "second");
  EXPECT_EQ(directory.Names(), Names{"file"});
}

TEST(WriteFileAtomically, GivesThePermissionsThatTheUserWants) {
  const TemporaryDirectory directory;
  const mode_t old_mask = ::umask(027);
  EXPECT_EQ(Message(WriteFileAtomically(directory.Path("file"), "x")), "written");
  ::umask(old_mask);
  struct stat status {};
  ASSERT_EQ(::stat(directory.Path("file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST(WriteFileAtomically, KeepsTheTemporaryFilesOfLivingWriters) {
  const TemporaryDirectory directory;
  const std::string name = ".file.perseus-" + std::to_string(::getpid()) + "-0.new";
  directory.Put(name, "another thread's");
  const FileDescriptor writer = OpenFile(directory.Path(name), O_WRONLY);
  ASSERT_EQ(::flock(writer.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(Message(WriteFileAtomically(directory.Path("file"), "x")), "written");
  EXPECT_EQ(directory.Names(), (Names{name, "file"}));
  EXPECT_EQ(directory.Get(name), "another thread's");
}

TEST(WriteFileAtomically, SweepsTheTemporaryFilesOfKilledWriters) {
  const TemporaryDirectory directory;
  directory.Put(".file.perseus-1-0.new", "half");
  directory.Put(".other.perseus-1-0.new", "of another file");
  directory.Put(".file.perseus-mine.new", "not ours");
  EXPECT_EQ(Message(WriteFileAtomically(directory.Path("file"), "x")), "written");
  EXPECT_EQ(directory.Names(), (Names{".file.perseus-mine.new", ".other.perseus-1-0.new", "file"}));
}

TEST(WriteFileAtomically, LeavesTheOldFileWhenTheDiskIsFull) {
  const TemporaryDirectory directory;
  directory.Put("file", "old");
  {
    const FileSizeLimit limit(10'000);
    EXPECT_EQ(Message(WriteFileAtomically(directory.Path("file"), std::string(20'000, 'x'))),
              directory.Path("file") +
                  ": cannot write: the file would be larger than this process may write (see "
                  "ulimit -f)");
  }
  EXPECT_EQ(directory.Get("file"), "old");
  EXPECT_EQ(directory.Names(), Names{"file"});
}

TEST(WriteFileAtomically, SaysWhatIsInTheWay) {
  const TemporaryDirectory directory;
  directory.Put("file", "x");
  EXPECT_EQ(Message(WriteFileAtomically("", "x")), "the name of the file to write is empty");
  EXPECT_EQ(
      Message(WriteFileAtomically(directory.Path(), "x")),
      directory.Path() + ": cannot write: it is a directory; choose another name, or remove it");
  EXPECT_EQ(Message(WriteFileAtomically("/dev/full", "x")),
            "/dev/full: cannot write: it exists and is not a regular file; choose another name");
  EXPECT_EQ(Message(WriteFileAtomically(directory.Path("none/file"), "x")),
            directory.Path("none/file") +
                ": cannot write: its directory does not exist; make it, or choose another place");
  EXPECT_EQ(Message(WriteFileAtomically(directory.Path("file/below"), "x")),
            directory.Path("file/below") +
                ": cannot write: a part of its path is a file, not a directory; choose another "
                "place");
  EXPECT_EQ(directory.Names(), Names{"file"});
}

TEST(WriteFileAtomically, SaysThatPermissionIsMissing) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
  const TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.Path().c_str(), 0500), 0);
  EXPECT_EQ(Message(WriteFileAtomically(directory.Path("file"), "x")),
            directory.Path("file") +
                ": cannot write: permission denied; choose a place that this user may write to");
  ASSERT_EQ(::chmod(directory.Path().c_str(), 0700), 0);
}

TEST(WriteFilesAtomically, MakesTheDirectoryWithItsParents) {
  const TemporaryDirectory directory;
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path("a/b/"), {{"x", "1"}, {"y", "2"}})),
            "written");
  EXPECT_EQ(directory.Get("a/b/x"), "1");
  EXPECT_EQ(directory.Get("a/b/y"), "2");
}

TEST(WriteFilesAtomically, ReplacesTheWholeSetInAnExistingDirectory) {
  const TemporaryDirectory directory;
  directory.Put("x", "old");
  directory.Put("mine", "untouched");
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path(), {{"x", "1"}, {"y", "2"}})), "written");
  EXPECT_EQ(directory.Names(), (Names{"mine", "x", "y"}));
  EXPECT_EQ(directory.Get("x"), "1");
  EXPECT_EQ(directory.Get("mine"), "untouched");
}

TEST(WriteFilesAtomically, ChangesNothingWhenOneFileFails) {
  const TemporaryDirectory directory;
  directory.Put("first", "old");
  const FileSizeLimit limit(10'000);
  const Result<void> written = WriteFilesAtomically(
      directory.Path(), {{"first", "new"}, {"second", std::string(20'000, 'x')}});
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
  EXPECT_EQ(directory.Names(), Names{"first"});
  EXPECT_EQ(directory.Get("first"), "old");
}

TEST(WriteFilesAtomically, RemovesTheDirectoriesThatItMadeWhenItFails) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path("kept")));
  {
    const FileSizeLimit limit(10'000);
    EXPECT_FALSE(WriteFilesAtomically(directory.Path("kept/a/b"),
                                      {{"x", "1"}, {"y", std::string(20'000, 'x')}}));
  }
  EXPECT_EQ(directory.Names(), Names{"kept"});
  EXPECT_TRUE(std::filesystem::is_empty(directory.Path("kept")));
}

TEST(WriteFilesAtomically, ChangesNothingWhenATargetIsADirectory) {
  const TemporaryDirectory directory;
  directory.Put("first", "old");
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path("second")));
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path(), {{"first", "new"}, {"second", "x"}})),
            directory.Path("second") +
                ": cannot write: it is a directory; choose another name, or remove it");
  EXPECT_EQ(directory.Get("first"), "old");
  EXPECT_EQ(directory.Names(), (Names{"first", "second"}));
}

TEST(WriteFilesAtomically, SaysThatTheDirectoryCannotBeMade) {
  const TemporaryDirectory directory;
  directory.Put("file", "x");
  EXPECT_EQ(Message(WriteFilesAtomically("", {{"x", "1"}})),
            "the name of the output directory is empty");
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path("file"), {{"x", "1"}})),
            directory.Path("file") + ": cannot make the directory: " + directory.Path("file") +
                " is a file");
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path("file/below"), {{"x", "1"}})),
            directory.Path("file/below") +
                ": cannot make the directory: " + directory.Path("file") + " is a file");
  EXPECT_EQ(directory.Get("file"), "x");
}

TEST(WriteFilesAtomically, FinishesTheSetOfAKilledWriter) {
  const TemporaryDirectory directory;
  directory.Put("x", "old");
  directory.Put("y", "new");  // Has been moved already.
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path(".perseus-commit")));
  directory.Put(".perseus-commit/x", "new");
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path(".set.perseus-1-0.new")));
  directory.Put(".set.perseus-1-0.new/x", "of yet another");
  EXPECT_EQ(Message(CheckWritable(directory.Path(), {"x", "y"})), "written");
  EXPECT_EQ(directory.Names(), (Names{"x", "y"}));
  EXPECT_EQ(directory.Get("x"), "new");
}

TEST(WriteFilesAtomically, FinishesNoSetThatIsNotItsOwn) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path("out")));
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path("victim")));
  directory.Put("victim/secret", "kept");
  std::filesystem::create_symlink("../victim", directory.Path("out/.perseus-commit"));
  const std::string expected =
      directory.Path("out") +
      ": cannot write: .perseus-commit in it is not a folder that Perseus made; remove it";
  EXPECT_EQ(Message(CheckWritable(directory.Path("out"), {"x"})), expected);
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path("out"), {{"x", "1"}})), expected);
  EXPECT_EQ(directory.Get("victim/secret"), "kept");
  std::filesystem::remove(directory.Path("out/.perseus-commit"));
  directory.Put("out/.perseus-commit", "a file");
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path("out"), {{"x", "1"}})), expected);
  EXPECT_EQ(directory.Get("out/.perseus-commit"), "a file");
}

TEST(WriteFilesAtomically, TakesASetBackWhoseLaterFileCannotBeMoved) {
  const TemporaryDirectory directory;
  directory.Put("a", "old");
  ASSERT_TRUE(std::filesystem::create_directories(directory.Path("c/below")));
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path(".perseus-commit")));
  for (const char* name : {"a", "b", "c"}) {
    directory.Put(std::string(".perseus-commit/") + name, "new");
  }
  EXPECT_EQ(
      Message(CheckWritable(directory.Path(), {"a", "b"})),
      directory.Path("c") + ": cannot write: it is a directory; choose another name, or remove it");
  EXPECT_EQ(directory.Names(), (Names{"a", "c"}));
  EXPECT_EQ(directory.Get("a"), "old");
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path(), {{"a", "1"}, {"b", "2"}})), "written");
}

// A writer was killed while it took a set back: "a" has its new file under two
// names and the old one kept, "b" and "c" wait.
TEST(WriteFilesAtomically, GoesOnAfterATakeBackThatWasKilledMidway) {
  for (const bool can_be_moved : {true, false}) {
    const TemporaryDirectory directory;
    ASSERT_TRUE(std::filesystem::create_directory(directory.Path(".perseus-commit")));
    for (const char* name : {"a", "b", "c"}) {
      directory.Put(std::string(".perseus-commit/") + name, "new");
    }
    std::filesystem::create_hard_link(directory.Path(".perseus-commit/a"), directory.Path("a"));
    directory.Put(".perseus-commit/.perseus-old-a", "old");
    directory.Put(".perseus-commit/.perseus-none-b", "");
    if (!can_be_moved) {
      ASSERT_TRUE(std::filesystem::create_directories(directory.Path("c/below")));
    }
    const std::string checked = Message(CheckWritable(directory.Path(), {"a", "b"}));
    EXPECT_EQ(directory.Get("a"), can_be_moved ? "new" : "old") << checked;
    EXPECT_EQ(directory.Names(), can_be_moved ? (Names{"a", "b", "c"}) : (Names{"a", "c"}));
  }
}

// The temporary names are longer than the file's.
TEST(WriteFilesAtomically, TakesTheLongestNames) {
  const TemporaryDirectory directory;
  const std::string longest(255, 'n');
  EXPECT_EQ(Message(WriteFileAtomically(directory.Path(longest), "1")), "written");
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path("d" + longest.substr(1)), {{"x", "1"}})),
            "written");
  EXPECT_EQ(directory.Names(), (Names{"d" + longest.substr(1), longest}));
  const std::string longer = directory.Path(longest + "n");
  const std::string one = Message(CheckWritable(longer));
  EXPECT_NE(one.find("longer than the file system takes"), std::string::npos) << one;
  EXPECT_EQ(Message(WriteFileAtomically(longer, "1")), one);
  const std::string set = Message(CheckWritable(longer, {"x"}));
  EXPECT_NE(set.find("longer than the file system takes"), std::string::npos) << set;
}

TEST(WriteFilesAtomically, ChangesNothingWhereOnlyTheOwnerMayReplaceAFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can make another user's file";
  constexpr uid_t kOther = 65534;
  const TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.Path().c_str(), 01777), 0);
  directory.Put("b", "another user's");
  ASSERT_EQ(::seteuid(kOther), 0);
  const std::string written =
      Message(WriteFilesAtomically(directory.Path(), {{"a", "1"}, {"b", "2"}}));
  const std::string alone = Message(CheckWritable(directory.Path("b")));
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(written, directory.Path("b") +
                         ": cannot write: it belongs to another user, and in its directory only "
                         "owners may replace files; choose another place");
  EXPECT_EQ(alone, written);
  EXPECT_EQ(directory.Names(), Names{"b"});
}

TEST(WriteFilesAtomically, SweepsANewFolderThatAKilledWriterLeft) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path(".plan.perseus-1-0.new")));
  directory.Put(".plan.perseus-1-0.new/x", "half");
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path("plan"), {{"x", "1"}})), "written");
  EXPECT_EQ(directory.Names(), Names{"plan"});
}

// ".." behind a symbolic link means what it means to the kernel, so that a caller
// that compares files by what they are sees where the set goes.
TEST(WriteFilesAtomically, GoesWhereTheKernelGoesBehindASymbolicLink) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(std::filesystem::create_directories(directory.Path("real/sub")));
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path("out")));
  std::filesystem::create_directory_symlink("real/sub", directory.Path("link"));
  directory.Put("out/x", "input");
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path("link/../out/./"), {{"x", "1"}})),
            "written");
  EXPECT_EQ(directory.Get("out/x"), "input");
  EXPECT_EQ(directory.Get("real/out/x"), "1");
}

TEST(WriteFilesAtomically, RefusesToLeadBackFromWhatIsNotThere) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(std::filesystem::create_directory(directory.Path("out")));
  directory.Put("out/x", "input");
  for (const char* path : {"none/../out", "none/.."}) {
    const std::string expected = directory.Path(path) +
                                 ": cannot make the directory: \"..\" follows a part that is not a "
                                 "directory; leave both out";
    EXPECT_EQ(Message(WriteFilesAtomically(directory.Path(path), {{"x", "1"}})), expected);
    EXPECT_EQ(Message(CheckWritable(directory.Path(path), {"x"})), expected);
  }
  EXPECT_EQ(directory.Names(), Names{"out"});
  EXPECT_EQ(directory.Get("out/x"), "input");
}

TEST(WriteFilesAtomically, SaysThatASymbolicLinkLeadsNowhere) {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("none", directory.Path("link"));
  const std::string expected = directory.Path("link") +
                               ": cannot make the directory: " + directory.Path("link") +
                               " is a symbolic link that leads nowhere";
  EXPECT_EQ(Message(WriteFilesAtomically(directory.Path("link"), {{"x", "1"}})), expected);
  EXPECT_EQ(Message(CheckWritable(directory.Path("link"), {"x"})), expected);
}

TEST(CheckWritable, SaysWhatIsInTheWayAndMakesNothing) {
  const TemporaryDirectory directory;
  directory.Put("file", "x");
  const Names names = {"x"};
  EXPECT_EQ(Message(CheckWritable(directory.Path("a/b"), names)), "written");
  EXPECT_EQ(Message(CheckWritable(directory.Path("new"))), "written");
  for (const Result<void>& refused :
       {CheckWritable(directory.Path("file/a"), names),
        CheckWritable(directory.Path("file"), names), CheckWritable(directory.Path("none/new")),
        CheckWritable(directory.Path("file/new")), CheckWritable(directory.Path()),
        CheckWritable(""), CheckWritable("", names)}) {
    EXPECT_FALSE(refused.has_value());
  }
  EXPECT_EQ(directory.Names(), Names{"file"});
}

// It says that root may write, and makes nothing.
TEST(CheckWritable, BelievesNoRightsThatTheFileSystemDoesNotKeep) {
  for (const std::string path : {"/proc", "/proc/none/below"}) {
    const Result<void> checked = CheckWritable(path, {"x"});
    ASSERT_FALSE(checked) << path;
    EXPECT_EQ(checked.error().message.find(path + ": cannot "), 0U) << checked.error().message;
  }
}

}  // namespace
}  // namespace perseus

// A drill: writers are killed at times drawn by chance. After the next run the
// folder holds one writer's whole set, and nothing else.

namespace perseus {
namespace {

const std::vector<std::string> kNames = {"a", "b", "c", "d"};

std::vector<OutputFile> SetOf(int generation) {
  std::vector<OutputFile> files;
  for (const std::string& name : kNames) {
    files.push_back({name, name + std::to_string(generation) + std::string(5'000, 'x')});
  }
  return files;
}

// Writes sets until it is killed.
[[noreturn]] void WriteForever(const std::string& directory) {
  for (int generation = 1;; ++generation) {
    static_cast<void>(WriteFilesAtomically(directory, SetOf(generation)));
  }
}

void KillAWriter(const std::string& directory, int signal, unsigned microseconds) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) WriteForever(directory);
  ::usleep(microseconds);
  ::kill(child, signal);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

void ExpectOneSet(const TemporaryDirectory& directory, const std::string& folder) {
  if (!std::filesystem::exists(directory.Path(folder))) return;  // Killed before the first.
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory.Path(folder))) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_EQ(names.size(), kNames.size());
  const std::string first = directory.Get(folder + "/a");
  for (const std::string& name : kNames) {
    const std::string bytes = directory.Get(folder + "/" + name);
    EXPECT_EQ(bytes.substr(0, 1), name);
    EXPECT_TRUE(bytes.substr(1) == first.substr(1)) << name;
  }
}

void Drill(int signal, bool sweep_first) {
  constexpr int kKills = 100;
  constexpr unsigned kLongest = 40'000;  // Microseconds: about two sets.
  std::mt19937 random(7);
  const TemporaryDirectory directory;
  for (int kill = 0; kill < kKills; ++kill) {
    KillAWriter(directory.Path("plan"), signal, random() % kLongest);
    if (sweep_first) {
      EXPECT_TRUE(CheckWritable(directory.Path("plan"), kNames).has_value());
    }
    ExpectOneSet(directory, "plan");
    if (random() % 3 == 0) std::filesystem::remove_all(directory.Path("plan"));
  }
  EXPECT_TRUE(WriteFilesAtomically(directory.Path("plan"), SetOf(0)).has_value());
  ExpectOneSet(directory, "plan");
  EXPECT_EQ(directory.Get("plan/a").substr(0, 2), "a0");
}

TEST(WriteFilesAtomically, LeavesOneWholeSetWhenKilled) { Drill(SIGKILL, /*sweep_first=*/true); }

TEST(WriteFilesAtomically, LeavesNothingElseWhenAskedToEnd) {
  Drill(SIGTERM, /*sweep_first=*/false);
}

}  // namespace
}  // namespace perseus
