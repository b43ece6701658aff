// System calls on files, each made directly: dup, dup3, chdir, fchdir, getcwd, umask, fchmodat, fchmodat2, fchown,
// fchownat, faccessat2, statx, statfs, fstatfs, fdatasync, sync, syncfs, fadvise64, readahead, sendfile, preadv, pipe2,
// getxattr and its family. Results that may differ between systems are only told to be one of those that are right.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long told(const char *what, long result) {
    if (result < 0) printf("%s: error %d\n", what, errno);
    else printf("%s: %ld\n", what, result);
    return result;
}

int main(void) {
    char text[4096] = "";
    int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0640);
    told("write", write(file, "0123456789abcdef", 16));
    int copy = syscall(SYS_dup, file);
    told("dup", copy - file);
    told("one offset", lseek(copy, 0, SEEK_CUR));
    told("dup3", syscall(SYS_dup3, file, 77, O_CLOEXEC));
    told("close on exec", fcntl(77, F_GETFD));
    told("dup3 to itself", syscall(SYS_dup3, file, file, 0));
    told("dup3 of nothing", syscall(SYS_dup3, 99, 5, 0));
    close(77);

    char first[4], second[4];
    struct iovec parts[2] = {{first, 4}, {second, 4}};
    told("preadv", syscall(SYS_preadv, file, parts, 2, 3L, 0L));
    printf("%.4s %.4s\n", first, second);
    int other = open("other", O_RDWR | O_CREAT | O_TRUNC, 0600);
    long from = 4;
    told("sendfile", syscall(SYS_sendfile, other, file, &from, 100L));
    printf("up to %ld\n", from);
    told("sent", pread(other, text, sizeof text, 0));
    printf("%.12s\n", text);
    told("fdatasync", syscall(SYS_fdatasync, file));
    told("fdatasync of nothing", syscall(SYS_fdatasync, 99));
    syscall(SYS_sync);
    told("syncfs", syscall(SYS_syncfs, file));
    told("fadvise64", syscall(SYS_fadvise64, file, 0L, 16L, POSIX_FADV_WILLNEED));
    told("readahead", syscall(SYS_readahead, file, 0L, 16L));

    told("umask", syscall(SYS_umask, 077));
    told("umask again", syscall(SYS_umask, 022));
    told("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "file", 0600));
    told("fchmodat of nothing", syscall(SYS_fchmodat, AT_FDCWD, "nothing", 0600));
    told("fchown to nobody else", syscall(SYS_fchown, file, -1, -1));
    told("fchownat", syscall(SYS_fchownat, AT_FDCWD, "file", -1, -1, 0));
    told("fchownat of nothing", syscall(SYS_fchownat, AT_FDCWD, "nothing", -1, -1, 0));
    long access = syscall(439, AT_FDCWD, "file", R_OK, 0);
    printf("faccessat2: %s\n", access == 0 || errno == ENOSYS ? "done or absent" : strerror(errno));
    long mode = syscall(452, AT_FDCWD, "file", 0644, 0);
    printf("fchmodat2: %s\n", mode == 0 || errno == ENOSYS ? "done or absent" : strerror(errno));
    struct statx facts;
    told("statx", syscall(SYS_statx, AT_FDCWD, "file", 0, STATX_SIZE | STATX_TYPE, &facts));
    printf("%llu bytes, %s\n", (unsigned long long)facts.stx_size, S_ISREG(facts.stx_mode) ? "a file" : "not a file");
    told("statx of nothing", syscall(SYS_statx, AT_FDCWD, "nothing", 0, STATX_SIZE, &facts));
    struct statfs system;
    told("statfs", syscall(SYS_statfs, ".", &system));
    printf("%s\n", system.f_bsize > 0 && system.f_namelen >= 255 ? "a file system" : "strange");
    told("fstatfs", syscall(SYS_fstatfs, file, &system));
    told("statfs of nothing", syscall(SYS_statfs, "nothing", &system));

    char start[4096], here[4096];
    long length = syscall(SYS_getcwd, start, sizeof start);
    told("getcwd", length == (long)strlen(start) + 1);
    told("getcwd without room", syscall(SYS_getcwd, here, 1L));
    int back = open(".", O_RDONLY | O_DIRECTORY);
    told("mkdirat", syscall(SYS_mkdirat, AT_FDCWD, "folder", 0755));
    told("chdir", syscall(SYS_chdir, "folder"));
    told("chdir to nothing", syscall(SYS_chdir, "nothing"));
    syscall(SYS_getcwd, here, sizeof here);
    printf("%s\n", strcmp(here + strlen(here) - 7, "/folder") == 0 ? "in the folder" : here);
    told("fchdir", syscall(SYS_fchdir, back));
    syscall(SYS_getcwd, here, sizeof here);
    printf("%s\n", strcmp(here, start) == 0 ? "back" : here);
    told("fchdir to a file", syscall(SYS_fchdir, file));

    // File systems keep attributes or do not; none of these exists.
    struct { const char *name; long result; } attributes[] = {
        {"getxattr", syscall(SYS_getxattr, "file", "user.none", text, 10L)},
        {"lgetxattr", syscall(SYS_lgetxattr, "file", "user.none", text, 10L)},
        {"fgetxattr", syscall(SYS_fgetxattr, file, "user.none", text, 10L)},
        {"setxattr", syscall(SYS_setxattr, "file", "nonsense", "x", 1L, 0)},
        {"lsetxattr", syscall(SYS_lsetxattr, "file", "nonsense", "x", 1L, 0)},
        {"fsetxattr", syscall(SYS_fsetxattr, file, "nonsense", "x", 1L, 0)},
    };
    for (unsigned i = 0; i < sizeof attributes / sizeof *attributes; i++) told(attributes[i].name, attributes[i].result < 0);
    const long lists[] = {syscall(SYS_listxattr, "file", text, 0L), syscall(SYS_llistxattr, "file", text, 0L),
                          syscall(SYS_flistxattr, file, text, 0L)};
    for (int i = 0; i < 3; i++) printf("%s\n", lists[i] == 0 || lists[i] == -1 ? "no attributes" : "attributes");

    int ends[2];
    told("pipe2", syscall(SYS_pipe2, ends, O_NONBLOCK));
    told("empty", read(ends[0], text, 10));
    told("into the pipe", write(ends[1], "pipe", 4));
    told("out of the pipe", read(ends[0], text, 10));
    told("seek", lseek(ends[0], 0, SEEK_SET));
    close(ends[1]);
    told("the end", read(ends[0], text, 10));
    told("copy_file_range or not", syscall(SYS_copy_file_range, file, NULL, other, NULL, 0L, 0) <= 0);
    unlink("file"), unlink("other"), rmdir("folder");
    return 0;
}
