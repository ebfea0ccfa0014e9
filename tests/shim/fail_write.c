/* Makes one call that changes a file of a checkpoint fail, or the program die in it: POISE_FAULT=N:HOW for the N-th
   such call, HOW being fail, tear (half of a write is made, then the program is killed) or kill; with
   POISE_FAULT_RANK=R in rank R of those that mpirun has started only. Loaded before the C library; leaves the file
   'triggered' where it struck. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls = 0;

static int concerns(const char* path) {
  return path != NULL && (strstr(path, ".nc.checkpoint") != NULL || strstr(path, ".nc.draws") != NULL ||
                          strstr(path, ".zarr") != NULL);
}

static int path_of(int descriptor, char* path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, size - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return 1;
}

static int concerns_descriptor(int descriptor) {
  char path[4096];
  return path_of(descriptor, path, sizeof path) && concerns(path);
}

/* What to do in this call: NULL for nothing. */
static const char* fault(void) {
  const char* wanted = getenv("POISE_FAULT");
  const char* wanted_rank = getenv("POISE_FAULT_RANK");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (wanted_rank != NULL && (rank == NULL || strcmp(rank, wanted_rank) != 0)) return NULL;
  if (wanted == NULL || atomic_fetch_add(&calls, 1) + 1 != strtol(wanted, NULL, 10)) return NULL;
  const int marker = open("triggered", O_WRONLY | O_CREAT, 0600);
  if (marker >= 0) close(marker);
  return strchr(wanted, ':') + 1;
}

#define REAL(name) \
  static __typeof__(name)* real = NULL; \
  if (real == NULL) real = (__typeof__(name)*)dlsym(RTLD_NEXT, #name)

/* One record, by one call, so that those of several threads do not mix. */
static void record(char kind, const char* path, const void* bytes, size_t count) {
  static ssize_t (*real)(int, const struct iovec*, int) = NULL;
  static int (*real_open)(const char*, int, ...) = NULL;
  const char* file = getenv("POISE_RECORD");
  if (file == NULL || strstr(path, ".zarr") == NULL) return;
  if (real == NULL) real = (ssize_t(*)(int, const struct iovec*, int))dlsym(RTLD_NEXT, "writev");
  if (real_open == NULL) real_open = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  const int descriptor = real_open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (descriptor < 0) return;
  char head[64];
  snprintf(head, sizeof head, "%c %zu %zu\n", kind, strlen(path), count);
  struct iovec all[3] = {{head, strlen(head)}, {(void*)path, strlen(path)}, {(void*)bytes, count}};
  (void)!real(descriptor, all, 3);
  close(descriptor);
}

static void record_descriptor(char kind, int descriptor, const void* bytes, size_t count) {
  char path[4096];
  if (getenv("POISE_RECORD") != NULL && path_of(descriptor, path, sizeof path)) record(kind, path, bytes, count);
}

static int struck(const char* how) {
  if (how == NULL) return 0;
  if (strcmp(how, "fail") != 0) kill(getpid(), SIGKILL);
  errno = ENOSPC;
  return 1;
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  REAL(write);
  if (concerns_descriptor(descriptor)) {
    const char* how = fault();
    if (how != NULL && strcmp(how, "tear") == 0) (void)!real(descriptor, bytes, count / 2);
    if (struck(how)) return -1;
  }
  const ssize_t written = real(descriptor, bytes, count);
  if (written > 0) record_descriptor('w', descriptor, bytes, (size_t)written);
  return written;
}

int open(const char* path, int flags, ...) {
  REAL(open);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  const int changes = (flags & O_CREAT) != 0 && concerns(path);
  if (changes && struck(fault())) return -1;
  const int descriptor = real(path, flags, mode);
  if (changes && descriptor >= 0) record_descriptor((flags & O_TRUNC) != 0 ? 'c' : 'o', descriptor, "", 0);
  return descriptor;
}

int mkdir(const char* path, mode_t mode) {
  REAL(mkdir);
  if (concerns(path) && struck(fault())) return -1;
  const int result = real(path, mode);
  if (result == 0) record('m', path, "", 0);
  return result;
}

/* Half of a torn one: all pieces but the last, and half of that one. */
ssize_t writev(int descriptor, const struct iovec* pieces, int count) {
  REAL(writev);
  if (concerns_descriptor(descriptor)) {
    const char* how = fault();
    if (how != NULL && strcmp(how, "tear") == 0) {
      struct iovec torn[64];
      const int some = count < 64 ? count : 64;
      memcpy(torn, pieces, (size_t)some * sizeof *pieces);
      torn[some - 1].iov_len /= 2;
      (void)!real(descriptor, torn, some);
    }
    if (struck(how)) return -1;
  }
  return real(descriptor, pieces, count);
}

int fsync(int descriptor) {
  REAL(fsync);
  if (concerns_descriptor(descriptor) && struck(fault())) return -1;
  const int result = real(descriptor);
  if (result == 0) record_descriptor('s', descriptor, "", 0);
  return result;
}

int ftruncate(int descriptor, off_t length) {
  REAL(ftruncate);
  if (concerns_descriptor(descriptor) && struck(fault())) return -1;
  return real(descriptor, length);
}

int rename(const char* from, const char* to) {
  REAL(rename);
  if (concerns(to) && struck(fault())) return -1;
  const int result = real(from, to);
  if (result == 0) record('r', from, to, strlen(to));
  return result;
}

int link(const char* from, const char* to) {
  REAL(link);
  if (concerns(to) && struck(fault())) return -1;
  return real(from, to);
}

int unlink(const char* path) {
  REAL(unlink);
  if (concerns(path) && struck(fault())) return -1;
  const int result = real(path);
  if (result == 0) record('u', path, "", 0);
  return result;
}
