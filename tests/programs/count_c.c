/* What a program uses of the C library: arguments, environment, formatted text, sorting, strings, files, the heap. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static int by_value(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static jmp_buf back;

static void leave(int depth) {
    if (depth == 0) longjmp(back, 5);
    leave(depth - 1);
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 200;
    int *values = malloc(count * sizeof *values);
    unsigned state = 1;
    for (int i = 0; i < count; i++) {
        state = state * 1103515245 + 12345;
        values[i] = state >> 16;
    }
    qsort(values, count, sizeof *values, by_value);
    char text[256], *cursor = text;
    for (int i = 0; i < 8; i++) cursor += sprintf(cursor, "%d:%x,", i, values[i * count / 8]);
    int words = 0;
    char *copy = strdup(text);
    for (char *word = strtok(copy, ",:"); word; word = strtok(NULL, ",:")) words += strlen(word);
    double root = 0;
    for (int i = 0; i < count; i++) root += sqrt(values[i]) + sin(i) * exp(-i * 0.01);

    FILE *file = fopen("count_c.bin", "w+");
    fwrite(values, sizeof *values, count, file);
    fseek(file, 4 * (count / 2), SEEK_SET);
    int middle = 0;
    if (fread(&middle, sizeof middle, 1, file) != 1) return 1;
    fclose(file);
    int fd = open("count_c.bin", O_RDWR);
    struct stat facts;
    fstat(fd, &facts);
    int *mapped = mmap(NULL, facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) return 2;
    long total = 0;
    for (int i = 0; i < count; i++) total += mapped[i];
    munmap(mapped, facts.st_size);
    close(fd);
    unlink("count_c.bin");
    fd = open("count_c.bin", O_RDONLY);

    struct utsname system;
    uname(&system);
    volatile int jumps = 0;
    if (setjmp(back) == 0) leave(20);
    else jumps = 1;
    for (int i = 1; i < 40; i++) free(malloc(i * i * 700));
    printf("%s|%d|%.6f|%d|%ld|%s %s|%s|%d|%s\n", text, words, root, middle, total, system.sysname, system.machine,
           fd < 0 ? strerror(errno) : "there", jumps, getenv("NOBODY") ? "set" : "unset");
    fprintf(stderr, "%d arguments\n", argc - 1);
    return 3;
}
