/* fuzzing.h - the driver of a coverage-guided fuzzer: PROGRAM SECONDS SEED FOUND CORPUS...
 *
 * What is tried is compiled with gcc's -fsanitize-coverage=trace-pc, whose callback is below: an input that takes a new
 * way through the code is kept and changed further. The first input for which `require` fails is written to the file
 * FOUND, and the program ends with exit code 1 (or as the sanitizers have it). Inputs follow from SEED alone; how many
 * there are, from the time.
 *
 * Who includes this has NAME, WORDS (NULL at the end) and `try`, which is called with 0 and with 1 for each input.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAP = 1 << 14, LARGEST = 512, MOST = 1 << 16 };

struct input {
    uint8_t *data;
    size_t size;
};

static uint8_t taken[MAP], seen[MAP];
static uintptr_t previous;
static struct input corpus[MOST], current;
static size_t kept;
static uint64_t state;
static const char *found_path;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_set_death_callback(void (*callback)(void));

void __sanitizer_cov_trace_pc(void)
{
    uintptr_t place = (uintptr_t)__builtin_return_address(0) * 0x9E3779B97F4A7C15u >> 48;
    taken[(place ^ previous) % MAP]++;
    previous = place >> 1;
}

static void write_found(void)
{
    FILE *file = fopen(found_path, "wb");
    if (file != NULL) {
        fwrite(current.data, 1, current.size, file);
        fclose(file);
        fprintf(stderr, "the input is in %s\n", found_path);
    }
}

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s: %s\n", NAME, what);
        write_found();
        _Exit(1);
    }
}

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (memory == NULL)
        abort();
    return memory;
}

static void try(int way);

static void change(void)
{
    uint8_t *p = current.data;
    size_t at = draw(current.size + 1), length, words = sizeof WORDS / sizeof *WORDS;
    const struct input *other = &corpus[draw(kept)];
    switch (draw(7)) {
    case 0: /* a bit */
        if (at < current.size)
            p[at] ^= (uint8_t)(1u << draw(8));
        return;
    case 1: /* a byte */
        if (at < current.size)
            p[at] = (uint8_t)draw(256);
        return;
    case 2: /* a word of the format */
        other = NULL;
        break;
    case 3: /* a part of another input */
        break;
    case 4: /* a part twice */
        other = &current;
        break;
    case 5: /* a part less */
        length = draw(1 + (current.size - at) % 32);
        memmove(p + at, p + at + length, current.size - at - length);
        current.size -= length;
        return;
    default: /* the end less */
        current.size = at;
        return;
    }
    const uint8_t *from;
    uint8_t part[32];
    if (other == NULL) {
        const char *word = WORDS[draw(words)];
        from = (const uint8_t *)word;
        length = strlen(word);
    } else {
        size_t begin = draw(other->size + 1);
        length = draw(sizeof part) % (other->size - begin + 1);
        memcpy(part, other->data + begin, length);
        from = part;
    }
    if (current.size + length <= LARGEST) {
        memmove(p + at + length, p + at, current.size - at);
        memcpy(p + at, from, length);
        current.size += length;
    }
}

/* Whether the ways taken hold one that no input before has taken, or not as often: powers of two count as one. */
static int is_new(void)
{
    int found = 0;
    for (size_t i = 0; i < MAP; i++) {
        uint8_t often = taken[i] > 31 ? 128 : taken[i] > 7 ? 64 : taken[i] > 3 ? 32 : (uint8_t)(taken[i] * taken[i]);
        found |= often & ~seen[i];
        seen[i] |= often;
    }
    return found != 0;
}

static void run(void)
{
    memset(taken, 0, sizeof taken);
    previous = 0;
    try(0);
    try(1);
    if (is_new() && kept < MOST) {
        corpus[kept] = (struct input){allocate(current.size), current.size};
        memcpy(corpus[kept++].data, current.data, current.size);
    }
}

static void load(const char *folder)
{
    struct dirent **names;
    int n = scandir(folder, &names, NULL, alphasort); /* in one order, so that a seed means one thing */
    char path[4096];
    for (int i = 0; i < n; i++) {
        FILE *file;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        file = names[i]->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file != NULL) {
            current.size = fread(current.data, 1, LARGEST, file);
            fclose(file);
            run();
        }
        free(names[i]);
    }
    if (n > 0)
        free(names);
}

int main(int argc, char **argv)
{
    time_t end;
    long tried = 0;
    int ways = 0;
    if (argc < 5) {
        fprintf(stderr, "usage: %s SECONDS SEED FOUND CORPUS...\n", NAME);
        return 2;
    }
    found_path = argv[3];
    state = strtoull(argv[2], NULL, 10) * 2 + 0x9E3779B97F4A7C15u;
    current.data = allocate(LARGEST);
    __sanitizer_set_death_callback(write_found);
    run(); /* the empty text */
    for (int i = 4; i < argc; i++)
        load(argv[i]);
    end = time(NULL) + strtol(argv[1], NULL, 10);
    for (; time(NULL) < end; tried++) {
        const struct input *base = &corpus[draw(kept)];
        current.size = base->size;
        memcpy(current.data, base->data, base->size);
        for (uint64_t changes = 1 + draw(6); changes > 0; changes--)
            change();
        run();
    }
    for (size_t i = 0; i < MAP; i++)
        ways += seen[i] != 0;
    printf("%s: %ld inputs, %d ways through the code, nothing found\n", NAME, tried, ways);
    return 0;
}
