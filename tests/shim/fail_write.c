/* Makes one call that changes a file of a checkpoint fail, or the program die in it: POISE_FAULT=N:HOW for the N-th
   such call, HOW being fail, tear (half of a write is made, then the program is killed) or kill. Loaded before the C
   library; leaves the file 'triggered' where it struck. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls = 0;

static int concerns(const char* path) {
  return path != NULL && (strstr(path, ".nc.checkpoint") != NULL || strstr(path, ".nc.draws") != NULL);
}

static int concerns_descriptor(int descriptor) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return concerns(path);
}

/* What to do in this call: NULL for nothing. */
static const char* fault(void) {
  const char* wanted = getenv("POISE_FAULT");
  if (wanted == NULL || atomic_fetch_add(&calls, 1) + 1 != strtol(wanted, NULL, 10)) return NULL;
  const int marker = open("triggered", O_WRONLY | O_CREAT, 0600);
  if (marker >= 0) close(marker);
  return strchr(wanted, ':') + 1;
}

#define REAL(name) \
  static __typeof__(name)* real = NULL; \
  if (real == NULL) real = (__typeof__(name)*)dlsym(RTLD_NEXT, #name)

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
  return real(descriptor, bytes, count);
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
  return real(descriptor);
}

int ftruncate(int descriptor, off_t length) {
  REAL(ftruncate);
  if (concerns_descriptor(descriptor) && struck(fault())) return -1;
  return real(descriptor, length);
}

int rename(const char* from, const char* to) {
  REAL(rename);
  if (concerns(to) && struck(fault())) return -1;
  return real(from, to);
}

int link(const char* from, const char* to) {
  REAL(link);
  if (concerns(to) && struck(fault())) return -1;
  return real(from, to);
}

int unlink(const char* path) {
  REAL(unlink);
  if (concerns(path) && struck(fault())) return -1;
  return real(path);
}
