/* Libraries that `relay.export_library` wrote, in C, without Python.
 *
 *     #define MYIA_RELAY_IMPLEMENTATION        // in one file of the program
 *     #include "myia_relay.h"
 *
 *     myia_relay_program *p;
 *     if (myia_relay_load("lenet.so", &p) != MYIA_RELAY_OK) { puts(myia_relay_message(NULL)); return 1; }
 *     myia_relay_array in = {image, NULL, 0, NULL}, out = {scores, NULL, 0, NULL};
 *     if (myia_relay_run(p, &in, &out) != MYIA_RELAY_OK) { puts(myia_relay_message(p)); return 1; }
 *     myia_relay_close(p);
 *
 * A static library (NAME.a) is linked to the program instead, which defines MYIA_RELAY_STATIC and calls
 * `myia_relay_linked(&p)`. C99; links with -lm, and -ldl where that is a library.
 *
 * A program is used by one thread at a time. Threads that run one library at once open it once each.
 */
#ifndef MYIA_RELAY_H
#define MYIA_RELAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MYIA_RELAY_OK = 0,
    MYIA_RELAY_NO_LIBRARY = 1, /* the file cannot be loaded, or is no library of this kind */
    MYIA_RELAY_ARGUMENT = 2,   /* an argument or a result has another dtype, shape or place than the library wants */
    MYIA_RELAY_NO_MEMORY = 3,
    MYIA_RELAY_TOO_DEEP = 4, /* a recursion needs more stack than MYIA_RELAY_STACK */
    MYIA_RELAY_INTERNAL = 5,
    /* What the function raised. */
    MYIA_RELAY_ASSERTION_ERROR = 10,
    MYIA_RELAY_VALUE_ERROR = 11,
    MYIA_RELAY_ZERO_DIVISION_ERROR = 12,
    MYIA_RELAY_INDEX_ERROR = 13,
    MYIA_RELAY_KEY_ERROR = 14,
    MYIA_RELAY_OVERFLOW_ERROR = 15,
    MYIA_RELAY_TYPE_ERROR = 16,
    MYIA_RELAY_FLOATING_POINT_ERROR = 17,
    MYIA_RELAY_RUNTIME_ERROR = 18,
    MYIA_RELAY_OTHER_ERROR = 19 /* the message begins with the name of its class */
};

typedef struct myia_relay_program myia_relay_program;

/* An argument or a result, as the library describes it. */
typedef struct {
    const char *name;     /* "x", "x.0", "batch.images"; "result", or "0", "1" of a tuple */
    const char *dtype;    /* "float32", "int64", "bool", ... as NumPy calls them */
    size_t itemsize;      /* bytes of an element */
    int ndim;             /* 0 for a number */
    const int64_t *shape; /* row-major; -1 is any size */
} myia_relay_value;

/* An argument or a result of a call. */
typedef struct {
    void *data;           /* the elements, row-major without gaps; NULL in a result: the program sets it, see below */
    const char *dtype;    /* checked; NULL: as the library says */
    int ndim;             /* with `shape` */
    const int64_t *shape; /* checked; NULL: as the library says, where that leaves no size open */
} myia_relay_array;

/* Load a shared object, whose checksum is looked at first (MYIA_RELAY_UNCHECKED: it is not, for files that were changed on purpose,
 * by `strip` or `patchelf`). Errors: MYIA_RELAY_NO_LIBRARY, MYIA_RELAY_NO_MEMORY; `myia_relay_message(NULL)` says more. */
int myia_relay_load(const char *path, myia_relay_program **program);
/* The library that is linked to this program. */
int myia_relay_linked(myia_relay_program **program);
void myia_relay_close(myia_relay_program *program);

const char *myia_relay_name(const myia_relay_program *program);
const char *myia_relay_target(const myia_relay_program *program);
int myia_relay_inputs(const myia_relay_program *program);
int myia_relay_outputs(const myia_relay_program *program);
const myia_relay_value *myia_relay_input(const myia_relay_program *program, int k);
const myia_relay_value *myia_relay_output(const myia_relay_program *program, int k);

/* Run it. A result with data NULL gets data, dtype, ndim and shape, which are the program's, until the next call. Where data is
 * given there is room for the whole result, and shape tells how much if that is given. Returns a code. */
int myia_relay_run(myia_relay_program *program, const myia_relay_array *inputs, myia_relay_array *outputs);
/* What the last error of the program was: "mymodel.py:12: ValueError: n is 0". NULL: of the last attempt to load. */
const char *myia_relay_message(const myia_relay_program *program);
/* What stands for a string, UTF-8 of so many bytes, in an input that is a column of strings ("book.name.code"). */
int64_t myia_relay_code(const char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif

#ifdef MYIA_RELAY_IMPLEMENTATION
#ifndef MYIA_RELAY_IMPLEMENTED
#define MYIA_RELAY_IMPLEMENTED

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef MYIA_RELAY_STATIC
#include <dlfcn.h>
#include <sys/stat.h>
#endif

#ifndef MYIA_RELAY_STACK
#define MYIA_RELAY_STACK (4 << 20) /* bytes of the C stack that recursive functions may use */
#endif
#define MYIA_RELAY_MOST 32 /* axes of an array */
#define MYIA_RELAY_TEXT 1024

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t type, padding;
    union {
        int64_t i;
        double f;
    } v;
} myia_relay_word;

typedef int (*myia_relay_main)(void *, const void *, int32_t, void *);

typedef struct {
    myia_relay_value value;
    int64_t kind, slot;
    const int64_t *dims[MYIA_RELAY_MOST]; /* where the description of each size is */
    int64_t fixed[MYIA_RELAY_MOST], now[MYIA_RELAY_MOST], sizes[MYIA_RELAY_MOST];
    void *own;
    size_t room;
} myia_relay_slot;

struct myia_relay_program {
    void *handle;
    myia_relay_main main;
    const char *arrays; /* those in the library */
    const char *name, *target;
    int64_t symbols, *origins, *symbol;
    int beyond; /* whether a size did not fit into 64 bits */
    int inputs, outputs, order, many;
    myia_relay_slot *in, *out;
    int64_t bound, *bounds;
    int64_t head, slots, presets, regions, frames[4], list, block, sites;
    const int64_t *arena, *preset, *region, *what;
    const int64_t **site;
    char *memory, *area, *frame;
    int64_t room;
    myia_relay_word *words;
    char message[MYIA_RELAY_TEXT];
};

enum { MYIA_INPUT, MYIA_BOUND, MYIA_SYMBOL, MYIA_AREA, MYIA_OUTPUT };
enum { MYIA_ARRAY, MYIA_FLOAT, MYIA_INTEGER, MYIA_RETURNED_FLOAT, MYIA_RETURNED_INTEGER, MYIA_SIZED };
enum { MYIA_SLOT_SITE, MYIA_SLOT_SERVER, MYIA_SLOT_REQUEST, MYIA_SLOT_OPERAND };

static char myia_relay_loading[MYIA_RELAY_TEXT];

static int myia_relay_fail(myia_relay_program *p, int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p ? p->message : myia_relay_loading, MYIA_RELAY_TEXT, format, arguments);
    va_end(arguments);
    return code;
}

/* --- reading the description ------------------------------------------------------------------------------------------ */

static const char *myia_relay_string(const int64_t **at) {
    const char *text = (const char *)(*at + 1);
    *at += 1 + **at / 8;
    return text;
}

/* CRC-32, eight bytes at a time. */
typedef struct {
    uint32_t of[8][256];
} myia_relay_table;

static void myia_relay_tabulate(myia_relay_table *t) {
    for (int k = 0; k < 8; k++)
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t x = k ? t->of[k - 1][n] : n;
            for (int bit = 0; bit < 8; bit++) x = x & 1 ? x >> 1 ^ 0xEDB88320u : x >> 1;
            t->of[k][n] = x;
        }
}

static uint32_t myia_relay_crc(const myia_relay_table *t, uint32_t crc, const void *data, size_t count) {
    const uint32_t(*table)[256] = t->of;
    const unsigned char *c = (const unsigned char *)data;
    crc = ~crc;
    for (; count >= 8; count -= 8, c += 8) {
        uint32_t low, high;
        memcpy(&low, c, 4);
        memcpy(&high, c + 4, 4);
        low ^= crc;
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
              table[3][high & 255] ^ table[2][high >> 8 & 255] ^ table[1][high >> 16 & 255] ^ table[0][high >> 24];
    }
    for (; count > 0; count--, c++) crc = table[0][(crc ^ *c) & 255] ^ crc >> 8;
    return ~crc;
}

/* Sums and products of sizes: those that do not fit are noted, and refused where they would be used. */
static int64_t myia_relay_times(myia_relay_program *p, int64_t a, int64_t b) {
    if (a == 0 || b == 0) return 0;
    if (a == INT64_MIN || b == INT64_MIN || (a < 0 ? -a : a) > INT64_MAX / (b < 0 ? -b : b)) return p->beyond = 1, 0;
    return a * b;
}

static int64_t myia_relay_plus(myia_relay_program *p, int64_t a, int64_t b) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return p->beyond = 1, 0;
    return a + b;
}

/* The bytes of an array; -1 where no memory has as many. */
static int64_t myia_relay_bytes(const myia_relay_value *v, const int64_t *shape) {
    uint64_t count = v->itemsize, most = PTRDIFF_MAX;
    for (int k = 0; k < v->ndim; k++)
        if (!shape[k]) return 0;
    for (int k = 0; k < v->ndim; k++) {
        if (shape[k] < 0 || count > most / (uint64_t)shape[k]) return -1;
        count *= (uint64_t)shape[k];
    }
    return (int64_t)count;
}

/* A size: a sum of products of symbols, and of quotients, rounded down, of such sums. */
static int64_t myia_relay_sum(myia_relay_program *p, const int64_t **at) {
    int64_t total = 0;
    for (int64_t terms = *(*at)++; terms > 0; terms--) {
        int64_t product = *(*at)++;
        for (int64_t count = *(*at)++; count > 0; count--) {
            int64_t factor = *(*at)++;
            if (factor >= 0)
                factor = p->symbol[factor];
            else {
                int64_t above = myia_relay_sum(p, at), below = myia_relay_sum(p, at);
                if (!below || (above == INT64_MIN && below == -1)) below = 1; /* before the symbols are known */
                factor = above / below - (above % below != 0 && (above < 0) != (below < 0));
            }
            product = myia_relay_times(p, product, factor);
        }
        total = myia_relay_plus(p, total, product);
    }
    return total;
}

static int64_t myia_relay_size(myia_relay_program *p, const int64_t *at) { return myia_relay_sum(p, &at); }

static const int64_t *myia_relay_skip(myia_relay_program *p, const int64_t *at) {
    myia_relay_sum(p, &at);
    return at;
}

/* Whether a size is a number, and which. */
static int64_t myia_relay_fixed(const int64_t *at) { return *at == 1 && at[2] == 0 ? at[1] : -1; }

static int myia_relay_slot_of(myia_relay_program *p, myia_relay_slot *s, const int64_t **at, int output) {
    s->value.name = myia_relay_string(at);
    s->kind = *(*at)++;
    if (output) s->slot = *(*at)++;
    s->value.dtype = myia_relay_string(at);
    s->value.itemsize = (size_t)*(*at)++;
    s->value.ndim = (int)*(*at)++;
    if (s->value.ndim > MYIA_RELAY_MOST) return 0;
    for (int k = 0; k < s->value.ndim; k++) {
        if (output && s->kind == MYIA_SIZED) {
            s->sizes[k] = *(*at)++;
            s->fixed[k] = *(*at)++;
            continue;
        }
        s->dims[k] = *at;
        s->fixed[k] = myia_relay_fixed(*at);
        *at = myia_relay_skip(p, *at);
    }
    s->value.shape = s->fixed;
    return 1;
}

static const int64_t *myia_relay_skip_site(const int64_t *at) {
    myia_relay_string(&at); /* the exception */
    at++;
    myia_relay_string(&at); /* the file */
    at++;
    myia_relay_string(&at);
    for (int64_t n = *at++; n > 0; n--) {
        at++;
        myia_relay_string(&at);
    }
    for (int64_t n = *at++; n > 0; n--) {
        int64_t kind = *at++;
        if (kind == 1) at++;
        if (kind < 2) myia_relay_string(&at);
    }
    return at;
}

static void *myia_relay_zeros(int64_t count, size_t size) { return calloc(count > 0 ? (size_t)count : 1, size); }

static int myia_relay_read(myia_relay_program *p, const void *library) {
    const char *base = (const char *)library;
    const int64_t *at = (const int64_t *)(base + 8);
    const int64_t *seal = at + 3; /* the checksums of what follows, and of what is before */
    if (memcmp(base, "MYIARLY1", 8) || at[0] != 2)
        return myia_relay_fail(NULL, MYIA_RELAY_NO_LIBRARY, "the library was written by another version");
    myia_relay_table table;
    myia_relay_tabulate(&table);
    if ((uint32_t)(*seal >> 32 & 0xFFFFFFFF) != myia_relay_crc(&table, 0, base, 32))
        return myia_relay_fail(NULL, MYIA_RELAY_NO_LIBRARY, "the library is damaged");
#if defined(MYIA_RELAY_STATIC) || defined(MYIA_RELAY_UNCHECKED)
    if ((uint32_t)(*seal & 0xFFFFFFFF) != myia_relay_crc(&table, 0, base + 40, (size_t)at[2] - 40))
        return myia_relay_fail(NULL, MYIA_RELAY_NO_LIBRARY, "the library is damaged");
#endif
    p->arrays = base + at[1];
    at = seal + 1;
    p->name = myia_relay_string(&at);
    p->target = myia_relay_string(&at);
    p->symbols = *at++;
    p->origins = (int64_t *)at;
    at += 2 * p->symbols;
    p->inputs = (int)*at++;
    p->symbol = (int64_t *)myia_relay_zeros(p->symbols, sizeof(int64_t));
    p->in = (myia_relay_slot *)myia_relay_zeros(p->inputs, sizeof(myia_relay_slot));
    if (!p->symbol || !p->in) return MYIA_RELAY_NO_MEMORY;
    for (int k = 0; k < p->inputs; k++)
        if (!myia_relay_slot_of(p, &p->in[k], &at, 0)) return MYIA_RELAY_NO_LIBRARY;
    p->bound = *at++;
    p->bounds = (int64_t *)at;
    at += p->bound;
    p->outputs = (int)*at++;
    p->out = (myia_relay_slot *)myia_relay_zeros(p->outputs, sizeof(myia_relay_slot));
    if (!p->out) return MYIA_RELAY_NO_MEMORY;
    for (int k = 0; k < p->outputs; k++)
        if (!myia_relay_slot_of(p, &p->out[k], &at, 1)) return MYIA_RELAY_NO_LIBRARY;
    p->order = (int)*at++;
    p->what = at;
    at += 2 * p->order;
    p->head = *at++;
    p->slots = *at++;
    p->arena = at;
    at = myia_relay_skip(p, at);
    p->presets = *at++;
    p->preset = at;
    at += 2 * p->presets;
    p->regions = *at++;
    p->region = at;
    at += p->regions;
    memcpy(p->frames, at, sizeof p->frames);
    at += 4;
    p->list = *at++;
    p->block = *at++;
    p->sites = *at++;
    p->site = (const int64_t **)myia_relay_zeros(p->sites, sizeof(int64_t *));
    p->words = (myia_relay_word *)myia_relay_zeros(p->order + 2, sizeof(myia_relay_word));
    if (!p->site || !p->words) return MYIA_RELAY_NO_MEMORY;
    for (int64_t k = 0; k < p->sites; k++) {
        p->site[k] = at;
        at = myia_relay_skip_site(at);
    }
    return MYIA_RELAY_OK;
}

/* --- what compiled code calls ----------------------------------------------------------------------------------------- */

static void myia_relay_describe(const myia_relay_program *p, int64_t site, char *text, size_t room, int *code);

/* A request: whether the program goes on. */
int32_t myia_relay_serve(int64_t server) {
    myia_relay_program *p = (myia_relay_program *)(intptr_t)server;
    const int64_t *slots = (const int64_t *)p->area;
    if (slots[MYIA_SLOT_REQUEST] == 0) return 1; /* of signals */
    if (slots[MYIA_SLOT_REQUEST] == 1) {
        char text[MYIA_RELAY_TEXT];
        myia_relay_describe(p, slots[MYIA_SLOT_OPERAND], text, sizeof text, NULL);
        fputs(text, stdout);
        return 1;
    }
    return 0;
}

void *myia_relay_realloc(void *old, int64_t size) { return realloc(old, (size_t)size); }

/* Arguments that do not fit: `myia_relay_run` checks them before. */
void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
    (void)kind, (void)parts, (void)count;
}
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *text) { (void)kind, (void)text; }

/* Products of row-major matrices: panels of NR columns are packed, and MYIA_RELAY_ROWS rows at a time are multiplied with one in
 * registers. The three inner loops are functions of their own: compilers make vectors of them, but for those of 32-bit ARM, whose
 * vectors take subnormal numbers for 0, so that they have to be asked for. */
enum { MYIA_RELAY_ROWS = 4 };

#define MYIA_RELAY_INNER(T, letter, NR)                                                                                \
    static void myia_relay_tile_##letter(int deep, const T *const *row, ptrdiff_t step, const T *panel, T *sum) {      \
        T s[MYIA_RELAY_ROWS][NR] = {{0}};                                                                              \
        for (int p = 0; p < deep; p++)                                                                                 \
            for (int r = 0; r < MYIA_RELAY_ROWS; r++) {                                                                \
                T x = row[r][p * step];                                                                                \
                for (int q = 0; q < NR; q++) s[r][q] += x * panel[p * NR + q];                                         \
            }                                                                                                          \
        memcpy(sum, s, sizeof s);                                                                                      \
    }                                                                                                                  \
    static T myia_relay_dot_##letter(int n, const T *x, const T *y) {                                                  \
        T part[8] = {0}, sum = 0;                                                                                      \
        int j = 0;                                                                                                     \
        for (; j + 8 <= n; j += 8)                                                                                     \
            for (int q = 0; q < 8; q++) part[q] += x[j + q] * y[j + q];                                                \
        for (; j < n; j++) sum += x[j] * y[j];                                                                         \
        for (int q = 0; q < 8; q++) sum += part[q];                                                                    \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static void myia_relay_add_##letter(int n, T f, const T *x, T *y) {                                                \
        for (int j = 0; j < n; j++) y[j] += f * x[j];                                                                  \
    }

#if defined(__ARM_NEON) && defined(__arm__)
#include <arm_neon.h>
#ifdef __ARM_FEATURE_FMA
#define MYIA_RELAY_FMA vfmaq_f32
#else
#define MYIA_RELAY_FMA vmlaq_f32
#endif
#define MYIA_RELAY_WIDTH 8 /* of a panel of floats: eight of the sixteen registers are sums */

static void myia_relay_tile_s(int deep, const float *const *row, ptrdiff_t step, const float *panel, float *sum) {
    float32x4_t s[2 * MYIA_RELAY_ROWS];
    for (int r = 0; r < 2 * MYIA_RELAY_ROWS; r++) s[r] = vdupq_n_f32(0);
    for (int p = 0; p < deep; p++) {
        float32x4_t low = vld1q_f32(panel + 8 * p), high = vld1q_f32(panel + 8 * p + 4);
        for (int r = 0; r < MYIA_RELAY_ROWS; r++) {
            float32x4_t x = vdupq_n_f32(row[r][p * step]);
            s[2 * r] = MYIA_RELAY_FMA(s[2 * r], x, low);
            s[2 * r + 1] = MYIA_RELAY_FMA(s[2 * r + 1], x, high);
        }
    }
    for (int r = 0; r < 2 * MYIA_RELAY_ROWS; r++) vst1q_f32(sum + 4 * r, s[r]);
}

static float myia_relay_dot_s(int n, const float *x, const float *y) {
    float32x4_t low = vdupq_n_f32(0), high = low;
    float part[4], sum = 0;
    int j = 0;
    for (; j + 8 <= n; j += 8) {
        low = MYIA_RELAY_FMA(low, vld1q_f32(x + j), vld1q_f32(y + j));
        high = MYIA_RELAY_FMA(high, vld1q_f32(x + j + 4), vld1q_f32(y + j + 4));
    }
    vst1q_f32(part, vaddq_f32(low, high));
    for (; j < n; j++) sum += x[j] * y[j];
    return sum + (part[0] + part[1]) + (part[2] + part[3]);
}

static void myia_relay_add_s(int n, float f, const float *x, float *y) {
    int j = 0;
    for (; j + 4 <= n; j += 4) vst1q_f32(y + j, MYIA_RELAY_FMA(vld1q_f32(y + j), vdupq_n_f32(f), vld1q_f32(x + j)));
    for (; j < n; j++) y[j] += f * x[j];
}
#else
#define MYIA_RELAY_WIDTH 16
MYIA_RELAY_INNER(float, s, MYIA_RELAY_WIDTH)
#endif
MYIA_RELAY_INNER(double, d, 8)

#define MYIA_RELAY_PRODUCTS(T, letter, NR)                                                                             \
    void scipy_cblas_##letter##gemm(int order, int ta, int tb, int m, int n, int k, T alpha, const T *a, int lda,      \
                                    const T *b, int ldb, T beta, T *c, int ldc) {                                      \
        T panel[NR * 256], sum[MYIA_RELAY_ROWS * NR];                                                                  \
        ptrdiff_t ar = ta == 112 ? 1 : lda, ac = ta == 112 ? lda : 1;                                                  \
        ptrdiff_t br = tb == 112 ? 1 : ldb, bc = tb == 112 ? ldb : 1;                                                  \
        (void)order;                                                                                                   \
        for (int j = 0; j < n; j += NR) {                                                                              \
            int width = n - j < NR ? n - j : NR;                                                                       \
            for (int i = 0; i < m; i++)                                                                                \
                for (int q = 0; q < width; q++)                                                                        \
                    c[(ptrdiff_t)i * ldc + j + q] = beta == 0 ? 0 : beta * c[(ptrdiff_t)i * ldc + j + q];              \
            for (int p0 = 0; p0 < k; p0 += 256) {                                                                      \
                int deep = k - p0 < 256 ? k - p0 : 256;                                                                \
                for (int p = 0; p < deep; p++)                                                                         \
                    for (int q = 0; q < NR; q++)                                                                       \
                        panel[p * NR + q] = q < width ? b[(p0 + p) * br + (j + q) * bc] : 0;                           \
                for (int i = 0; i < m; i += MYIA_RELAY_ROWS) {                                                         \
                    int rows = m - i < MYIA_RELAY_ROWS ? m - i : MYIA_RELAY_ROWS;                                      \
                    const T *row[MYIA_RELAY_ROWS];                                                                     \
                    for (int r = 0; r < MYIA_RELAY_ROWS; r++) row[r] = a + (i + (r < rows ? r : 0)) * ar + p0 * ac;    \
                    myia_relay_tile_##letter(deep, row, ac, panel, sum);                                               \
                    for (int r = 0; r < rows; r++)                                                                     \
                        for (int q = 0; q < width; q++) c[(ptrdiff_t)(i + r) * ldc + j + q] += alpha * sum[r * NR + q];\
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    void scipy_cblas_##letter##gemv(int order, int ta, int m, int n, T alpha, const T *a, int lda, const T *x,         \
                                    int incx, T beta, T *y, int incy) {                                                \
        int length = ta == 112 ? n : m;                                                                                \
        (void)order;                                                                                                   \
        for (int i = 0; i < length; i++) y[(ptrdiff_t)i * incy] = beta == 0 ? 0 : beta * y[(ptrdiff_t)i * incy];       \
        for (int i = 0; i < m; i++) {                                                                                  \
            const T *row = a + (ptrdiff_t)i * lda;                                                                     \
            T f = alpha * x[ta == 112 ? (ptrdiff_t)i * incx : 0], sum = 0;                                             \
            if (ta == 112 && incy == 1)                                                                                \
                myia_relay_add_##letter(n, f, row, y);                                                                 \
            else if (ta == 112)                                                                                        \
                for (int j = 0; j < n; j++) y[(ptrdiff_t)j * incy] += f * row[j];                                      \
            else {                                                                                                     \
                if (incx == 1)                                                                                         \
                    sum = myia_relay_dot_##letter(n, row, x);                                                          \
                else                                                                                                   \
                    for (int j = 0; j < n; j++) sum += row[j] * x[(ptrdiff_t)j * incx];                                \
                y[(ptrdiff_t)i * incy] += alpha * sum;                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }

MYIA_RELAY_PRODUCTS(float, s, MYIA_RELAY_WIDTH)
MYIA_RELAY_PRODUCTS(double, d, 8)

/* --- messages --------------------------------------------------------------------------------------------------------- */

/* A float as Python writes it: the fewest digits that give it back. */
static void myia_relay_float(char *text, size_t room, double x, int narrow) {
    char digits[40];
    int count = 0, power;
    if (isnan(x) || isinf(x)) {
        snprintf(text, room, "%s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
        return;
    }
    do snprintf(digits, sizeof digits, "%.*e", count, x);
    while ((narrow ? (double)strtof(digits, NULL) != x : strtod(digits, NULL) != x) && ++count < 17);
    power = atoi(strchr(digits, 'e') + 1);
    if (power < -4 || power >= 16)
        snprintf(text, room, "%.*e", count, x);
    else
        snprintf(text, room, "%.*f", count - power > 0 ? count - power : 1, x);
}

static void myia_relay_operand(const myia_relay_program *p, const int64_t *at, const char *spec, char *text, size_t room) {
    int64_t kind = *at++;
    if (kind == 0) {
        snprintf(text, room, "%s", myia_relay_string(&at));
        return;
    }
    if (kind != 1) {
        snprintf(text, room, "...");
        return;
    }
    const char *where = p->area + 8 * *at++, *dtype = myia_relay_string(&at);
    if (strstr(dtype, "float")) {
        double x;
        char format[32], last = *spec ? spec[strlen(spec) - 1] : 0;
        memcpy(&x, where, 8);
        if (last && strchr("fFeEgG", last) && strlen(spec) < 20 && strspn(spec, "0123456789.+-") == strlen(spec) - 1) {
            snprintf(format, sizeof format, "%%%s", spec);
            snprintf(text, room, format, x);
        } else
            myia_relay_float(text, room, x, !strcmp(dtype, "float32"));
        return;
    }
    int64_t n;
    memcpy(&n, where, 8);
    if (!strcmp(dtype, "bool"))
        snprintf(text, room, "%s", n ? "True" : "False");
    else if (!strcmp(dtype, "uint64"))
        snprintf(text, room, "%llu", (unsigned long long)n);
    else
        snprintf(text, room, "%lld", (long long)n);
}

static void myia_relay_describe(const myia_relay_program *p, int64_t site, char *text, size_t room, int *code) {
    const int64_t *at = p->site[site], *parts, *operands;
    const char *exception = myia_relay_string(&at), *file, *end;
    int64_t number = *at++, line, count;
    file = myia_relay_string(&at);
    line = *at++;
    end = myia_relay_string(&at);
    count = *at++;
    parts = operands = at;
    for (int64_t k = 0; k < count; k++) {
        operands++;
        myia_relay_string(&operands);
    }
    size_t used = 0;
    if (code) {
        *code = (int)number;
        used = (size_t)snprintf(text, room, "%s:%lld: %s%s", file, (long long)line, exception, count ? ": " : "");
    }
    for (; count > 0 && used < room; count--) {
        int64_t index = *parts++;
        const char *literal = myia_relay_string(&parts);
        if (index < 0)
            snprintf(text + used, room - used, "%s", literal);
        else {
            const int64_t *operand = operands + 1;
            for (; index > 0; index--) {
                int64_t kind = *operand++;
                if (kind == 1) operand++;
                if (kind < 2) myia_relay_string(&operand);
            }
            myia_relay_operand(p, operand, literal, text + used, room - used);
        }
        used += strlen(text + used);
    }
    if (!code && used < room) snprintf(text + used, room - used, "%s", end);
}

/* --- running ---------------------------------------------------------------------------------------------------------- */

static int myia_relay_shape(myia_relay_program *p, const myia_relay_slot *s, const myia_relay_array *a, const int64_t *now) {
    if (a->dtype && strcmp(a->dtype, s->value.dtype))
        return myia_relay_fail(p, MYIA_RELAY_ARGUMENT, "%s is %s, not %s", s->value.name, s->value.dtype, a->dtype);
    if (!a->shape) return MYIA_RELAY_OK;
    if (a->ndim != s->value.ndim)
        return myia_relay_fail(p, MYIA_RELAY_ARGUMENT, "%s has %d axes, not %d", s->value.name, s->value.ndim, a->ndim);
    for (int k = 0; k < a->ndim; k++) {
        if (a->shape[k] < 0)
            return myia_relay_fail(p, MYIA_RELAY_ARGUMENT, "axis %d of %s cannot be %lld long", k, s->value.name,
                                   (long long)a->shape[k]);
        if (now[k] >= 0 && now[k] != a->shape[k])
            return myia_relay_fail(p, MYIA_RELAY_ARGUMENT, "axis %d of %s is %lld long, not %lld", k, s->value.name,
                                   (long long)now[k], (long long)a->shape[k]);
    }
    if (myia_relay_bytes(&s->value, a->shape) < 0)
        return myia_relay_fail(p, MYIA_RELAY_ARGUMENT, "%s has more elements than there is memory", s->value.name);
    return MYIA_RELAY_OK;
}

static int64_t myia_relay_integer(const myia_relay_slot *s, const void *data) {
    const char *d = s->value.dtype;
    int is_unsigned = d[0] == 'u' || d[0] == 'b';
    switch (s->value.itemsize) {
    case 1: return is_unsigned ? *(const uint8_t *)data : *(const int8_t *)data;
    case 2: return is_unsigned ? *(const uint16_t *)data : *(const int16_t *)data;
    case 4: return is_unsigned ? (int64_t) * (const uint32_t *)data : *(const int32_t *)data;
    default: return *(const int64_t *)data;
    }
}

static void myia_relay_store(const myia_relay_slot *s, void *data, const void *word, int floating) {
    if (floating) {
        double x;
        memcpy(&x, word, 8);
        if (s->value.itemsize == 4)
            *(float *)data = (float)x;
        else
            *(double *)data = x;
    } else {
        int64_t n;
        memcpy(&n, word, 8);
        switch (s->value.itemsize) {
        case 1: *(int8_t *)data = (int8_t)n; break;
        case 2: *(int16_t *)data = (int16_t)n; break;
        case 4: *(int32_t *)data = (int32_t)n; break;
        default: *(int64_t *)data = n;
        }
    }
}

/* Memory for a result that has none. */
static int myia_relay_room(myia_relay_program *p, myia_relay_slot *s, myia_relay_array *a) {
    int64_t bytes = myia_relay_bytes(&s->value, s->now);
    size_t need = (size_t)bytes;
    if (bytes < 0 || p->beyond)
        return myia_relay_fail(p, MYIA_RELAY_NO_MEMORY, "%s has more elements than there is memory", s->value.name);
    if (a->data) {
        /* The caller's: it is as large as its shape says. */
        return myia_relay_shape(p, s, a, s->now);
    }
    if (s->room < need || !s->own) {
        free(s->own);
        s->room = 0;
        s->own = malloc(need ? need : 1);
        if (!s->own) return myia_relay_fail(p, MYIA_RELAY_NO_MEMORY, "no memory for %s", s->value.name);
        s->room = need;
    }
    a->data = s->own;
    a->dtype = s->value.dtype;
    a->ndim = s->value.ndim;
    a->shape = s->now;
    return MYIA_RELAY_OK;
}

static int myia_relay_prepare(myia_relay_program *p) {
    int64_t need = myia_relay_size(p, p->arena);
    if (need < 0) need = 0;
    if (p->memory && p->room >= need && !p->beyond) return MYIA_RELAY_OK;
    if (p->beyond || (uint64_t)need > (uint64_t)PTRDIFF_MAX - 64 - (uint64_t)p->head)
        return myia_relay_fail(p, MYIA_RELAY_NO_MEMORY, "the call needs more than there is memory");
    char *memory = (char *)calloc(1, (size_t)(p->head + need + 64));
    if (!memory) return myia_relay_fail(p, MYIA_RELAY_NO_MEMORY, "no memory for %lld bytes", (long long)need);
    char *area = memory + (64 - (uintptr_t)memory % 64) % 64;
    if (p->memory) memcpy(area, p->area, (size_t)p->head); /* what earlier calls have allocated stays */
    free(p->memory);
    p->memory = memory;
    p->area = area;
    p->room = need;
    if (!p->slots) return MYIA_RELAY_OK;
    int64_t *slots = (int64_t *)area;
    slots[MYIA_SLOT_SERVER] = (int64_t)(intptr_t)p;
    for (int64_t k = 0; k < p->presets; k++) slots[p->preset[2 * k]] = (int64_t)(intptr_t)(p->arrays + p->preset[2 * k + 1]);
    if (p->frames[0] >= 0) {
        if (!p->frame) p->frame = (char *)malloc((size_t)p->frames[3] + 64);
        if (!p->frame) return myia_relay_fail(p, MYIA_RELAY_NO_MEMORY, "no memory for frames");
        slots[p->frames[0]] = (int64_t)(intptr_t)(p->frame + (64 - (uintptr_t)p->frame % 64) % 64);
        slots[p->frames[1]] = slots[p->frames[0]] + p->frames[3];
    }
    return MYIA_RELAY_OK;
}

static void myia_relay_release(myia_relay_program *p) {
    if (p->list < 0 || !p->area) return;
    int64_t *slots = (int64_t *)p->area;
    while (slots[p->list]) {
        int64_t *block = (int64_t *)(intptr_t)slots[p->list];
        slots[p->list] = block[1];
        free(block);
    }
}

int myia_relay_run(myia_relay_program *p, const myia_relay_array *inputs, myia_relay_array *outputs) {
    int code;
    p->message[0] = 0;
    p->beyond = 0;
    for (int k = 0; k < p->inputs; k++) {
        myia_relay_slot *s = &p->in[k];
        if (!inputs[k].data) return myia_relay_fail(p, MYIA_RELAY_ARGUMENT, "%s is NULL", s->value.name);
        if ((code = myia_relay_shape(p, s, &inputs[k], s->fixed))) return code;
        for (int axis = 0; axis < s->value.ndim; axis++)
            if (s->fixed[axis] < 0 && !inputs[k].shape)
                return myia_relay_fail(p, MYIA_RELAY_ARGUMENT, "%s has sizes of its own: give its shape", s->value.name);
    }
    for (int64_t k = 0; k < p->symbols; k++) p->symbol[k] = inputs[p->origins[2 * k]].shape[p->origins[2 * k + 1]];
    for (int k = 0; k < p->inputs; k++) {
        myia_relay_slot *s = &p->in[k];
        for (int axis = 0; axis < s->value.ndim; axis++) s->now[axis] = myia_relay_size(p, s->dims[axis]);
        if (p->beyond) return myia_relay_fail(p, MYIA_RELAY_ARGUMENT, "the sizes of %s are too large", s->value.name);
        if ((code = myia_relay_shape(p, s, &inputs[k], s->now))) return code;
    }
    for (int k = 0; k < p->outputs; k++) {
        myia_relay_slot *s = &p->out[k];
        if (s->kind == MYIA_SIZED) continue;
        for (int axis = 0; axis < s->value.ndim; axis++) {
            s->now[axis] = myia_relay_size(p, s->dims[axis]);
            if (s->now[axis] < 0) s->now[axis] = 0;
        }
        if ((code = myia_relay_room(p, s, &outputs[k]))) return code;
    }
    if ((code = myia_relay_prepare(p))) return code;
    int64_t *slots = (int64_t *)p->area;
    if (p->frames[0] >= 0) slots[p->frames[2]] = (int64_t)((intptr_t)&code - MYIA_RELAY_STACK);
    int passed = 0;
    for (int k = 0; k < p->order; k++) {
        int64_t what = p->what[2 * k], index = p->what[2 * k + 1];
        myia_relay_word word = {1, 0, {0}};
        if (what == MYIA_INPUT) {
            const myia_relay_slot *s = &p->in[index];
            const void *data = inputs[index].data;
            if (s->kind == MYIA_ARRAY)
                word.v.i = (int64_t)(intptr_t)data;
            else if (s->kind == MYIA_FLOAT) {
                word.type = 3;
                word.v.f = s->value.itemsize == 4 ? *(const float *)data : *(const double *)data;
            } else
                word.v.i = myia_relay_integer(s, data);
        } else if (what == MYIA_BOUND)
            word.v.i = (int64_t)(intptr_t)(p->arrays + p->bounds[index]);
        else if (what == MYIA_SYMBOL)
            word.v.i = p->symbol[index];
        else if (what == MYIA_AREA)
            word.v.i = (int64_t)(intptr_t)p->area;
        else
            for (int q = 0; q < p->outputs; q++)
                if (p->out[q].kind == MYIA_ARRAY && p->out[q].slot == index) word.v.i = (int64_t)(intptr_t)outputs[q].data;
        if (p->block >= 0 && what != MYIA_AREA)
            slots[p->block + k] = word.v.i; /* the same bits for a float */
        else
            p->words[passed++] = word;
    }
    myia_relay_word *result = &p->words[p->order + 1];
    memset(result, 0, sizeof *result);
    if (p->main(NULL, p->words, passed, result))
        return myia_relay_fail(p, MYIA_RELAY_INTERNAL, "the library refused its arguments: it is not of this machine");
    int returned = 0;
    for (int k = 0; k < p->outputs; k++) returned |= p->out[k].kind == MYIA_RETURNED_FLOAT || p->out[k].kind == MYIA_RETURNED_INTEGER;
    if (!returned && result->type != 0) {
        if (result->v.i == 1)
            myia_relay_describe(p, slots[MYIA_SLOT_SITE], p->message, MYIA_RELAY_TEXT, &code);
        else if (result->v.i == 2)
            code = myia_relay_fail(p, MYIA_RELAY_TOO_DEEP, "the recursion needs more than %d bytes of stack", (int)MYIA_RELAY_STACK);
        else
            code = myia_relay_fail(p, MYIA_RELAY_NO_MEMORY, "the program ran out of memory");
        myia_relay_release(p);
        return code;
    }
    for (int k = 0; k < p->outputs && !code; k++) {
        myia_relay_slot *s = &p->out[k];
        if (s->kind == MYIA_RETURNED_FLOAT || s->kind == MYIA_RETURNED_INTEGER)
            myia_relay_store(s, outputs[k].data, &result->v, s->kind == MYIA_RETURNED_FLOAT);
        else if (s->kind == MYIA_FLOAT || s->kind == MYIA_INTEGER)
            myia_relay_store(s, outputs[k].data, &slots[s->slot], s->kind == MYIA_FLOAT);
        else if (s->kind == MYIA_SIZED) {
            for (int axis = 0; axis < s->value.ndim; axis++) s->now[axis] = slots[s->sizes[axis]];
            int64_t bytes = myia_relay_bytes(&s->value, s->now);
            if (!(code = myia_relay_room(p, s, &outputs[k])) && bytes)
                memcpy(outputs[k].data, (const void *)(intptr_t)slots[s->slot], (size_t)bytes);
        }
    }
    myia_relay_release(p);
    return code;
}

/* --- loading ---------------------------------------------------------------------------------------------------------- */

void myia_relay_close(myia_relay_program *p) {
    if (!p) return;
    myia_relay_release(p);
    for (int64_t k = 0; p->area && k < p->regions; k++) free((void *)(intptr_t)((int64_t *)p->area)[p->region[k]]);
    for (int k = 0; p->out && k < p->outputs; k++) free(p->out[k].own);
    free(p->memory);
    free(p->frame);
    free(p->symbol);
    free(p->in);
    free(p->out);
    free((void *)p->site);
    free(p->words);
#ifndef MYIA_RELAY_STATIC
    if (p->handle) dlclose(p->handle);
#endif
    free(p);
}

static int myia_relay_open(void *handle, const void *library, myia_relay_main main, myia_relay_program **out) {
    myia_relay_program *p = (myia_relay_program *)calloc(1, sizeof *p);
    int code = p ? myia_relay_read(p, library) : MYIA_RELAY_NO_MEMORY;
    *out = NULL;
    if (code) {
        myia_relay_close(p);
        return code == MYIA_RELAY_NO_MEMORY ? myia_relay_fail(NULL, code, "no memory") : code;
    }
    p->handle = handle;
    p->main = main;
    *out = p;
    return MYIA_RELAY_OK;
}

#ifdef MYIA_RELAY_STATIC
extern const int64_t myia_relay_library[];
extern int __tvm_ffi_main(void *, const void *, int32_t, void *);

int myia_relay_linked(myia_relay_program **program) {
    return myia_relay_open(NULL, myia_relay_library, (myia_relay_main)__tvm_ffi_main, program);
}
#else
/* Whether a file is as it was written: it ends with a mark, the length of the rest, and its CRC-32. */
static int myia_relay_whole(const char *path) {
    struct stat status;
    unsigned char piece[1 << 14];
    uint64_t end[3], left;
    uint32_t crc = 0;
    myia_relay_table table;
    myia_relay_tabulate(&table);
    if (stat(path, &status)) return myia_relay_fail(NULL, MYIA_RELAY_NO_LIBRARY, "%s: there is no such file", path);
    FILE *file = S_ISREG(status.st_mode) ? fopen(path, "rb") : NULL;
    if (!file) return myia_relay_fail(NULL, MYIA_RELAY_NO_LIBRARY, "%s cannot be read", path);
    int code = MYIA_RELAY_OK;
    if (fseek(file, -(long)sizeof end, SEEK_END) || fread(end, 1, sizeof end, file) != sizeof end || memcmp(end, "MYIAEND1", 8) ||
        end[1] != (uint64_t)status.st_size - sizeof end)
        code = myia_relay_fail(NULL, MYIA_RELAY_NO_LIBRARY, "%s was cut off or changed, or not written by relay.export_library", path);
    rewind(file);
    for (left = code ? 0 : end[1]; left > 0;) {
        size_t want = left < sizeof piece ? (size_t)left : sizeof piece, got = fread(piece, 1, want, file);
        if (!got) break;
        crc = myia_relay_crc(&table, crc, piece, got);
        left -= got;
    }
    fclose(file);
    if (!code && (left || crc != end[2])) return myia_relay_fail(NULL, MYIA_RELAY_NO_LIBRARY, "%s is damaged", path);
    return code;
}

int myia_relay_load(const char *path, myia_relay_program **program) {
    /* Functions that the library calls through variables; those of the C library have versions, and this is the newest. */
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
#define MYIA_RELAY_NAMED(f) {"__" #f, (void *)f},
#define MYIA_RELAY_ONE(name) {"__got_" #name, (void *)(double (*)(double))name}, {"__got_" #name "f", (void *)name##f},
#define MYIA_RELAY_TWO(name) {"__got_" #name, (void *)(double (*)(double, double))name}, {"__got_" #name "f", (void *)name##f},
        MYIA_RELAY_NAMED(myia_relay_serve) MYIA_RELAY_NAMED(myia_relay_realloc)
        MYIA_RELAY_NAMED(TVMFFIErrorSetRaisedFromCStrParts) MYIA_RELAY_NAMED(TVMFFIErrorSetRaisedFromCStr)
        MYIA_RELAY_NAMED(scipy_cblas_sgemm) MYIA_RELAY_NAMED(scipy_cblas_dgemm)
        MYIA_RELAY_NAMED(scipy_cblas_sgemv) MYIA_RELAY_NAMED(scipy_cblas_dgemv)
        MYIA_RELAY_ONE(exp) MYIA_RELAY_ONE(exp2) MYIA_RELAY_ONE(log) MYIA_RELAY_ONE(log2) MYIA_RELAY_TWO(pow) MYIA_RELAY_TWO(fmod)
    };
    void *handle, *library, *main;
    char here[MYIA_RELAY_TEXT];
    snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path); /* a file, not a name to be searched for */
    *program = NULL;
#ifndef MYIA_RELAY_UNCHECKED
    if (myia_relay_whole(here)) return MYIA_RELAY_NO_LIBRARY;
#endif
    handle = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return myia_relay_fail(NULL, MYIA_RELAY_NO_LIBRARY, "%s", dlerror());
    library = dlsym(handle, "myia_relay_library");
    main = dlsym(handle, "__tvm_ffi_main");
    if (!library || !main) {
        dlclose(handle);
        return myia_relay_fail(NULL, MYIA_RELAY_NO_LIBRARY, "%s: not written by relay.export_library", path);
    }
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        void **variable = (void **)dlsym(handle, functions[k].name);
        if (variable) *variable = functions[k].function;
    }
    int code = myia_relay_open(handle, library, (myia_relay_main)main, program);
    if (code) dlclose(handle);
    return code;
}
#endif

const char *myia_relay_name(const myia_relay_program *p) { return p->name; }
const char *myia_relay_target(const myia_relay_program *p) { return p->target; }
int myia_relay_inputs(const myia_relay_program *p) { return p->inputs; }
int myia_relay_outputs(const myia_relay_program *p) { return p->outputs; }
const myia_relay_value *myia_relay_input(const myia_relay_program *p, int k) { return &p->in[k].value; }
const myia_relay_value *myia_relay_output(const myia_relay_program *p, int k) { return &p->out[k].value; }
const char *myia_relay_message(const myia_relay_program *p) { return p ? p->message : myia_relay_loading; }

int64_t myia_relay_code(const char *text, size_t size) {
  const uint64_t first = 0x9E3779B97F4A7C15u, second = 0xBF58476D1CE4E5B9u;
  uint64_t hashed = size * first;
  size_t at, k;
  if (!size) return 0;
  for (at = 0; at < size; at += 8) {
    uint64_t word = 0;
    for (k = 0; k < 8 && at + k < size; k++) word |= (uint64_t)(unsigned char)text[at + k] << (8 * k);
    hashed = (hashed ^ word) * second;
    hashed ^= hashed >> 32;
  }
  hashed *= first;
  hashed = (hashed ^ hashed >> 29) * second;
  return (int64_t)((hashed ^ hashed >> 32) >> 1);
}

#ifdef __cplusplus
}
#endif
#endif
#endif
