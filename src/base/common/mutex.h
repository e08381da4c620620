// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_MUTEX_H_
#define PERSEUS_COMMON_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

// Locks that clang checks (-Wthread-safety): a member says which lock it is read and written
// with, a function which one it is called with. Other compilers read past that.
#ifdef __clang__
#define PERSEUS_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define PERSEUS_THREAD_ATTRIBUTE(x)
#endif

// Of a member: only with `lock`. Of a function: called with `lock` held, alone or together with
// other readers.
#define PERSEUS_GUARDED_BY(lock) PERSEUS_THREAD_ATTRIBUTE(guarded_by(lock))
#define PERSEUS_REQUIRES(lock) PERSEUS_THREAD_ATTRIBUTE(requires_capability(lock))
#define PERSEUS_REQUIRES_SHARED(lock) PERSEUS_THREAD_ATTRIBUTE(requires_shared_capability(lock))

// Attributes for the definitions of locks.
#define PERSEUS_NO_THREAD_SAFETY_ANALYSIS PERSEUS_THREAD_ATTRIBUTE(no_thread_safety_analysis)
#define PERSEUS_ASSERTS(lock) PERSEUS_THREAD_ATTRIBUTE(assert_capability(lock))
#define PERSEUS_CAPABILITY(name) PERSEUS_THREAD_ATTRIBUTE(capability(name))
#define PERSEUS_SCOPED_CAPABILITY PERSEUS_THREAD_ATTRIBUTE(scoped_lockable)
#define PERSEUS_ACQUIRE(...) PERSEUS_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define PERSEUS_ACQUIRE_SHARED(...) PERSEUS_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define PERSEUS_RELEASE(...) PERSEUS_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define PERSEUS_RELEASE_SHARED(...) PERSEUS_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define PERSEUS_RELEASE_GENERIC(...) \
  PERSEUS_THREAD_ATTRIBUTE(release_generic_capability(__VA_ARGS__))

namespace perseus {

// As std::mutex.
class PERSEUS_CAPABILITY("mutex") Mutex {
 public:
  void Lock() PERSEUS_ACQUIRE() { mutex_.lock(); }
  void Unlock() PERSEUS_RELEASE() { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

// As std::shared_mutex.
class PERSEUS_CAPABILITY("mutex") SharedMutex {
 public:
  void Lock() PERSEUS_ACQUIRE() { mutex_.lock(); }
  void Unlock() PERSEUS_RELEASE() { mutex_.unlock(); }
  void LockShared() PERSEUS_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void UnlockShared() PERSEUS_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// Holds a mutex as long as it lives.
class PERSEUS_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) PERSEUS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() PERSEUS_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// The reverse, within a MutexLock: lets others have the mutex as long as it lives.
class PERSEUS_SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) PERSEUS_RELEASE(mutex) : mutex_(mutex) { mutex_.Unlock(); }
  ~MutexUnlock() PERSEUS_RELEASE() { mutex_.Lock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

// Holds a shared mutex alone.
class PERSEUS_SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) PERSEUS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~WriterLock() PERSEUS_RELEASE() { mutex_.Unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// Holds a shared mutex together with other readers.
class PERSEUS_SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) PERSEUS_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.LockShared();
  }
  ~ReaderLock() PERSEUS_RELEASE_GENERIC() { mutex_.UnlockShared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// As std::condition_variable. Whoever waits asks in a loop for what he waits for, since clang does
// not see through a predicate; and since he may be woken for nothing.
class ConditionVariable {
 public:
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

  void Wait(Mutex& mutex) PERSEUS_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // False: it is `until` now.
  template <typename Duration>
  bool WaitUntil(Mutex& mutex,
                 const std::chrono::time_point<std::chrono::steady_clock, Duration>& until)
      PERSEUS_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_until(lock, until);
    lock.release();
    return status == std::cv_status::no_timeout;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace perseus

#endif  // PERSEUS_COMMON_MUTEX_H_
