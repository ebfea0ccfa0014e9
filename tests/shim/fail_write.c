/* Makes one call below the store of a run fail, or the program die in it: POISE_FAULT=N:HOW for the N-th such call, HOW
   being fail, tear (half of a write is made, then the program is killed) or kill; with POISE_FAULT_RANK=R in rank R of
   those that mpirun has started only. Loaded before the C library; leaves the file 'triggered', with the name of the
   call, where it struck. */
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
  return path != NULL && strstr(path, ".zarr") != NULL;
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

/* The path of a name in an open folder. */
static const char* at(int folder, const char* name, char* path, size_t size) {
  if (folder == AT_FDCWD || name[0] == '/') return name;
  if (!path_of(folder, path, size)) return name;
  const size_t length = strlen(path);
  snprintf(path + length, size - length, "/%s", name);
  return path;
}

/* What to do in this call: NULL for nothing. */
static const char* fault(const char* name) {
  const char* wanted = getenv("POISE_FAULT");
  const char* wanted_rank = getenv("POISE_FAULT_RANK");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (wanted_rank != NULL && (rank == NULL || strcmp(rank, wanted_rank) != 0)) return NULL;
  if (wanted == NULL || atomic_fetch_add(&calls, 1) + 1 != strtol(wanted, NULL, 10)) return NULL;
  const int marker = open("triggered", O_WRONLY | O_CREAT, 0600);
  if (marker >= 0) {
    (void)!write(marker, name, strlen(name));
    close(marker);
  }
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

/* 1 where the call is to fail. */
static int struck(const char* how, int reason) {
  if (how == NULL) return 0;
  if (strcmp(how, "fail") != 0) kill(getpid(), SIGKILL);
  errno = reason;
  return 1;
}

static int struck_path(const char* name, const char* path, int reason) {
  return concerns(path) && struck(fault(name), reason);
}

static int struck_descriptor(const char* name, int descriptor, int reason) {
  return concerns_descriptor(descriptor) && struck(fault(name), reason);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  REAL(write);
  if (concerns_descriptor(descriptor)) {
    const char* how = fault("write");
    if (how != NULL && strcmp(how, "tear") == 0) (void)!real(descriptor, bytes, count / 2);
    if (struck(how, ENOSPC)) return -1;
  }
  const ssize_t written = real(descriptor, bytes, count);
  if (written > 0) record_descriptor('w', descriptor, bytes, (size_t)written);
  return written;
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  REAL(pwrite);
  if (concerns_descriptor(descriptor)) {
    const char* how = fault("pwrite");
    if (how != NULL && strcmp(how, "tear") == 0) (void)!real(descriptor, bytes, count / 2, offset);
    if (struck(how, ENOSPC)) return -1;
  }
  return real(descriptor, bytes, count, offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off_t offset) {
  return pwrite(descriptor, bytes, count, offset);
}

/* Half of a torn one: all pieces but the last, and half of that one. */
ssize_t writev(int descriptor, const struct iovec* pieces, int count) {
  REAL(writev);
  if (concerns_descriptor(descriptor)) {
    const char* how = fault("writev");
    if (how != NULL && strcmp(how, "tear") == 0) {
      struct iovec torn[64];
      const int some = count < 64 ? count : 64;
      memcpy(torn, pieces, (size_t)some * sizeof *pieces);
      torn[some - 1].iov_len /= 2;
      (void)!real(descriptor, torn, some);
    }
    if (struck(how, ENOSPC)) return -1;
  }
  return real(descriptor, pieces, count);
}

/* Also of a file that is only read, or of a folder that is to be synced. */
static int opened(int folder, const char* name, int flags, mode_t mode) {
  REAL(openat);
  char buffer[4096];
  const char* path = at(folder, name, buffer, sizeof buffer);
  const int makes = (flags & O_CREAT) != 0;
  if (struck_path(makes ? "open to write" : "open", path, makes ? ENOSPC : EMFILE)) return -1;
  const int descriptor = real(folder, name, flags, mode);
  if (makes && descriptor >= 0 && concerns(path)) record_descriptor((flags & O_TRUNC) != 0 ? 'c' : 'o', descriptor, "", 0);
  return descriptor;
}

static mode_t mode_of(int flags, va_list more) {
  const int makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return makes ? va_arg(more, mode_t) : 0;
}

#define OPENS(name, parameters, folder, path) \
  int name parameters { \
    va_list more; \
    va_start(more, flags); \
    const mode_t mode = mode_of(flags, more); \
    va_end(more); \
    return opened(folder, path, flags, mode); \
  }
OPENS(open, (const char* path, int flags, ...), AT_FDCWD, path)
OPENS(open64, (const char* path, int flags, ...), AT_FDCWD, path)
OPENS(openat, (int folder, const char* path, int flags, ...), folder, path)
OPENS(openat64, (int folder, const char* path, int flags, ...), folder, path)

int mkdirat(int folder, const char* name, mode_t mode) {
  REAL(mkdirat);
  char buffer[4096];
  const char* path = at(folder, name, buffer, sizeof buffer);
  if (struck_path("mkdir", path, ENOSPC)) return -1;
  const int result = real(folder, name, mode);
  if (result == 0) record('m', path, "", 0);
  return result;
}
int mkdir(const char* path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int fsync(int descriptor) {
  REAL(fsync);
  if (struck_descriptor("fsync", descriptor, ENOSPC)) return -1;
  const int result = real(descriptor);
  if (result == 0) record_descriptor('s', descriptor, "", 0);
  return result;
}

int fdatasync(int descriptor) {
  REAL(fdatasync);
  if (struck_descriptor("fdatasync", descriptor, ENOSPC)) return -1;
  const int result = real(descriptor);
  if (result == 0) record_descriptor('s', descriptor, "", 0);
  return result;
}

int ftruncate(int descriptor, off_t length) {
  REAL(ftruncate);
  return struck_descriptor("ftruncate", descriptor, ENOSPC) ? -1 : real(descriptor, length);
}

int truncate(const char* path, off_t length) {
  REAL(truncate);
  return struck_path("truncate", path, ENOSPC) ? -1 : real(path, length);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  REAL(renameat);
  char buffer[4096], other[4096];
  const char* path = at(to_folder, to, buffer, sizeof buffer);
  if (struck_path("rename", path, ENOSPC)) return -1;
  const int result = real(from_folder, from, to_folder, to);
  if (result == 0) record('r', at(from_folder, from, other, sizeof other), path, strlen(path));
  return result;
}
int rename(const char* from, const char* to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int link(const char* from, const char* to) {
  REAL(link);
  return struck_path("link", to, ENOSPC) ? -1 : real(from, to);
}

int unlinkat(int folder, const char* name, int flags) {
  REAL(unlinkat);
  char buffer[4096];
  const char* path = at(folder, name, buffer, sizeof buffer);
  if (struck_path("unlink", path, EIO)) return -1;
  const int result = real(folder, name, flags);
  if (result == 0 && (flags & AT_REMOVEDIR) == 0) record('u', path, "", 0);
  return result;
}
int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

/* A descriptor is gone whatever close says. */
int close(int descriptor) {
  REAL(close);
  const int fails = struck_descriptor("close", descriptor, ENOSPC);
  const int result = real(descriptor);
  return fails ? -1 : result;
}
