/* Loaded before the C library: the n-th call of one kind fails, as LSVM_FAULT=kind:n says (tests/cli/test_accidents.py).
 * Kinds: write (write and pwrite, no space left) and sync (fsync and fdatasync, input/output error). */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(const char *kind, int code)
{
    static int calls;
    const char *wanted = getenv("LSVM_FAULT");
    size_t length = strlen(kind);
    if (!wanted || strncmp(wanted, kind, length) || wanted[length] != ':') {
        return 0;
    }
    if (__sync_add_and_fetch(&calls, 1) != atoi(wanted + length + 1)) {
        return 0;
    }
    errno = code;
    return 1;
}

ssize_t write(int file, const void *data, size_t size)
{
    return fails("write", ENOSPC) ? -1 : syscall(SYS_write, file, data, size);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at)
{
    return fails("write", ENOSPC) ? -1 : syscall(SYS_pwrite64, file, data, size, at);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) { return pwrite64(file, data, size, at); }

int fsync(int file) { return fails("sync", EIO) ? -1 : (int)syscall(SYS_fsync, file); }

int fdatasync(int file) { return fails("sync", EIO) ? -1 : (int)syscall(SYS_fdatasync, file); }
