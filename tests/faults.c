/* Loaded before the C library: the n-th call of one kind fails (tests/cli/test_accidents.py).
 * LSVM_FAULT=kind:n, or kind:n:bytes for allocations of at least so many bytes. LSVM_ARMED=call:text: calls count from
 * the first open, rename or unlink (the call) of a file whose name holds the text; else from the start.
 * Kinds: write (write and pwrite, no space left), sync (fsync and fdatasync, input/output error), memory (malloc,
 * calloc, realloc, their aligned forms, mmap), fork, thread (pthread_create), and kill: the process is killed at the
 * n-th open, write, sync, rename, unlink or memfd_create, or, as in "kill write", at the n-th of one of these. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
pid_t __fork(void);

static char kind[16];
static const char *first;
static long wanted;
static size_t least;
static int armed;

__attribute__((constructor)) static void begin(void)
{
    const char *fault = getenv("LSVM_FAULT"), *colon = fault ? strchr(fault, ':') : NULL;
    char *end;
    if (!colon || colon - fault >= (long)sizeof kind) {
        return;
    }
    memcpy(kind, fault, (size_t)(colon - fault));
    wanted = strtol(colon + 1, &end, 10);
    least = *end ? strtoul(end + 1, NULL, 10) : 0;
    first = getenv("LSVM_ARMED");
    armed = !first;
}

static int fails(const char *what, int code)
{
    static long calls;
    if (!armed || strcmp(what, kind) || __sync_add_and_fetch(&calls, 1) != wanted) {
        return 0;
    }
    errno = code;
    return 1;
}

static int refuses(size_t size) { return armed && size >= least && fails("memory", ENOMEM); }

/* kind: "kill" counts all these calls, "kill write" those of one name */
static void reached(const char *call, const char *name)
{
    size_t length = strlen(call);
    if (first && !strncmp(first, call, length) && first[length] == ':' && strstr(name, first + length + 1)) {
        armed = 1;
    }
    if (!strncmp(kind, "kill", 4) && (!kind[4] || !strcmp(kind + 5, call)) && fails(kind, 0)) {
        kill(getpid(), SIGKILL);
    }
}

static int opened(int folder, const char *name, int flags, mode_t mode)
{
    reached("open", name);
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}

static mode_t mode_of(int flags, va_list rest)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

int open(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return opened(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...) __attribute__((alias("open")));

int rename(const char *name, const char *to)
{
    reached("rename", name);
    return (int)syscall(SYS_rename, name, to);
}

int unlink(const char *name)
{
    reached("unlink", name);
    return (int)syscall(SYS_unlink, name);
}

int memfd_create(const char *name, unsigned flags)
{
    reached("memfd_create", name);
    return (int)syscall(SYS_memfd_create, name, flags);
}

ssize_t write(int file, const void *data, size_t size)
{
    reached("write", "");
    return fails("write", ENOSPC) ? -1 : syscall(SYS_write, file, data, size);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at)
{
    reached("write", "");
    return fails("write", ENOSPC) ? -1 : syscall(SYS_pwrite64, file, data, size, at);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) { return pwrite64(file, data, size, at); }

static int synced(long call, int file)
{
    reached("sync", "");
    return fails("sync", EIO) ? -1 : (int)syscall(call, file);
}

int fsync(int file) { return synced(SYS_fsync, file); }

int fdatasync(int file) { return synced(SYS_fdatasync, file); }

void *malloc(size_t size) { return refuses(size) ? NULL : __libc_malloc(size); }

void *calloc(size_t n, size_t size) { return refuses(n * size) ? NULL : __libc_calloc(n, size); }

void *realloc(void *old, size_t size) { return refuses(size) ? NULL : __libc_realloc(old, size); }

void *aligned_alloc(size_t to, size_t size) { return refuses(size) ? NULL : __libc_memalign(to, size); }

int posix_memalign(void **into, size_t to, size_t size)
{
    void *found = aligned_alloc(to, size);
    if (!found) {
        return ENOMEM;
    }
    *into = found;
    return 0;
}

void *mmap64(void *at, size_t size, int allowed, int flags, int file, off64_t from)
{
    return refuses(size) ? MAP_FAILED : (void *)syscall(SYS_mmap, at, size, allowed, flags, file, from);
}

void *mmap(void *at, size_t size, int allowed, int flags, int file, off_t from)
{
    return mmap64(at, size, allowed, flags, file, from);
}

/* Python takes fork where vfork fails, so that one kind is enough. */
pid_t vfork(void)
{
    errno = EAGAIN;
    return -1;
}

pid_t fork(void) { return fails("fork", EAGAIN) ? -1 : __fork(); }

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *with)
{
    int (*usual)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = NULL;
    if (fails("thread", EAGAIN)) {
        return EAGAIN;
    }
    *(void **)&usual = dlsym(RTLD_NEXT, "pthread_create");
    return usual(thread, how, work, with);
}
