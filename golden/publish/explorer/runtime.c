/* What the core needs of a C library, in WebAssembly without one: memory, and a floating-point environment,
 * which WebAssembly does not have (it rounds to nearest and keeps no flags).
 *
 * A block has a size of 16 << n bytes and a head of 16 bytes with n. A block that is freed waits in the list of
 * its size, so that memory grows only to the most that was ever in use. */
#include <fenv.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE 65536 /* bytes by which memory grows */

typedef union block {
    struct {
        union block *next;
        int size_class;
    };
    char head[16]; /* keeps what follows aligned for every type */
} block;

extern char __heap_base;
static block *freed[32];
static char *top, *end;

void *malloc(size_t bytes) {
    const size_t most = (size_t)1 << 30; /* of 4 GiB in all; a larger size has no class */
    if (bytes > most) return NULL;
    int n = 0;
    while (((size_t)16 << n) < bytes) n++;
    block *found = freed[n];
    if (found) {
        freed[n] = found->next;
        return found + 1;
    }
    if (!top) {
        top = (char *)(((uintptr_t)&__heap_base + 15) / 16 * 16);
        end = (char *)(__builtin_wasm_memory_size(0) * PAGE);
    }
    const size_t size = sizeof(block) + ((size_t)16 << n);
    if (size > (size_t)(end - top)) {
        const size_t pages = (size - (size_t)(end - top) + PAGE - 1) / PAGE;
        if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return NULL;
        end += pages * PAGE;
    }
    found = (block *)top;
    top += size;
    found->size_class = n;
    return found + 1;
}

void *calloc(size_t count, size_t bytes) {
    if (bytes && count > (size_t)-1 / bytes) return NULL;
    void *found = malloc(count * bytes);
    return found ? __builtin_memset(found, 0, count * bytes) : NULL;
}

void free(void *memory) {
    if (!memory) return;
    block *one = (block *)memory - 1;
    one->next = freed[one->size_class];
    freed[one->size_class] = one;
}

int fegetenv(fenv_t *environment) { return (void)environment, 0; }
int fesetenv(const fenv_t *environment) { return (void)environment, 0; }
