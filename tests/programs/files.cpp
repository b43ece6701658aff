// Files and folders below the working folder: everything is told in a form that does not depend on the host.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace fs = std::filesystem;

static void say(const char* what, long value) { std::printf("%s %ld\n", what, value); }

static void streams() {
    std::ofstream("work/text") << "one\ntwo\nthree\n";
    std::ofstream("work/text", std::ios::app) << "four\n";
    std::ifstream in("work/text");
    long lines = 0;
    for (std::string line; std::getline(in, line);) {
        lines += static_cast<long>(line.size());
    }
    say("characters", lines);
    FILE* file = std::fopen("work/numbers", "w+");
    for (int i = 0; i < 5000; i++) {
        std::fprintf(file, "%d ", i);
    }
    std::fseek(file, 2000, SEEK_SET);
    int number = 0;
    say("scanned", std::fscanf(file, "%d", &number));
    say("number", number);
    say("position", std::ftell(file));
    std::fclose(file);
}

static void folders() {
    fs::create_directories("work/a/b/c");
    fs::copy_file("work/text", "work/a/copy");
    fs::rename("work/a/copy", "work/a/b/moved");
    fs::create_hard_link("work/a/b/moved", "work/a/hard");
    fs::create_symlink("b/moved", "work/a/soft");
    fs::resize_file("work/a/hard", 7);
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator("work")) {
        names.push_back(entry.path().string() + (entry.is_directory() ? "/" : entry.is_symlink() ? "@" : ""));
    }
    std::sort(names.begin(), names.end());
    for (const auto& name : names) {
        std::puts(name.c_str());
    }
    say("through the link", static_cast<long>(fs::file_size("work/a/soft")));
    say("link names", static_cast<long>(fs::read_symlink("work/a/soft").string().size()));
    say("removed", static_cast<long>(fs::remove_all("work/a/b")));
    std::error_code error;
    static_cast<void>(fs::file_size("work/a/soft", error));
    say("dangling", error == std::errc::no_such_file_or_directory);
    fs::remove("work", error);
    say("not empty", error == std::errc::directory_not_empty);
}

static void descriptors() {
    int fd = open("work/data", O_RDWR | O_CREAT | O_EXCL, 0600);
    say("again", open("work/data", O_RDWR | O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST);
    iovec parts[] = {{const_cast<char*>("0123456789"), 10}, {const_cast<char*>("abcdef"), 6}};
    say("pwritev", pwritev(fd, parts, 2, 4));
    char bytes[32] = {};
    say("pread", pread(fd, bytes, 30, 0));
    say("hole", bytes[3] == 0 && bytes[4] == '0');
    say("allocated", posix_fallocate(fd, 0, 100));
    say("end", lseek(fd, -10, SEEK_END));
    say("seek", lseek(fd, -1000, SEEK_CUR) == -1 && errno == EINVAL);
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    say("lock", fcntl(fd, F_SETLK, &lock));
    say("locked by", fcntl(fd, F_GETLK, &lock) == 0 ? lock.l_type == F_UNLCK : -1);
    say("flock", ::flock(fd, LOCK_EX | LOCK_NB));
    int other = fcntl(fd, F_DUPFD_CLOEXEC, 20);
    say("duplicate", other);
    say("flags", fcntl(other, F_GETFD));
    say("shared position", lseek(other, 0, SEEK_CUR));
    pollfd polled = {fd, POLLIN | POLLOUT, 0};
    say("poll", poll(&polled, 1, 1000));
    say("ready", polled.revents == (POLLIN | POLLOUT));
    say("terminal", isatty(fd));
    say("chmod", fchmod(fd, 0644));
    say("access", access("work/data", R_OK | W_OK));
    say("executable", access("work/data", X_OK));
    struct stat facts = {};
    say("fstat", fstat(fd, &facts));
    say("regular", S_ISREG(facts.st_mode));
    say("size", facts.st_size);
    say("times", futimens(fd, nullptr));
    say("synced", fsync(fd));
    close(other);
    close(fd);
    say("closed", read(fd, bytes, 1) == -1 && errno == EBADF);
}

static void mappings() {
    int fd = open("work/mapped", O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, 3 * 4096) != 0) {
        std::puts("ftruncate failed");
    }
    auto map = [fd](int flags, off_t page, size_t pages) {
        return static_cast<char*>(mmap(nullptr, pages * 4096, PROT_READ | PROT_WRITE, flags, fd, page * 4096));
    };
    char* one = map(MAP_SHARED, 0, 1);
    char* all = map(MAP_SHARED, 0, 3);
    std::jthread([one] { std::strcpy(one, "written by a thread"); }).join();
    say("seen", std::strcmp(all, "written by a thread"));
    std::strcpy(all + 8192, "third");
    say("msync", msync(all, 3 * 4096, MS_SYNC));
    char bytes[32] = {};
    say("read", pread(fd, bytes, 6, 8192));
    say("third", std::strcmp(bytes, "third"));
    say("write", pwrite(fd, "file", 4, 8192));
    say("in the mapping", std::memcmp(all + 8192, "filed", 5));
    char* own = map(MAP_PRIVATE, 0, 2);
    std::strcpy(own, "private");
    say("unchanged", std::strcmp(all, "written by a thread"));
    say("protected", mprotect(own, 4096, PROT_READ));
    munmap(one, 4096);
    munmap(own, 8192);
    munmap(all, 3 * 4096);
    close(fd);
    auto* memory = static_cast<char*>(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::strcpy(memory + 500000, "moved");
    memory = static_cast<char*>(mremap(memory, 1 << 20, 1 << 22, MREMAP_MAYMOVE));
    say("mremap", std::strcmp(memory + 500000, "moved"));
    say("madvise", madvise(memory, 1 << 22, MADV_DONTNEED));
    say("empty", memory[500000]);
}

int main() {
    fs::create_directory("work");
    streams();
    folders();
    descriptors();
    mappings();
    say("left", static_cast<long>(fs::remove_all("work")));
}
