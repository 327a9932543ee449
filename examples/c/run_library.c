/* Says what a library is, and runs it.
 *
 *     run_library lenet.so image.raw             # elements as they are in memory: array.tofile("image.raw")
 *     run_library f.so x.raw:3,4 n.raw           # with the shape, where the library leaves it open
 *     run_library_arm image.raw                  # linked to a static library: cc -DMYIA_RELAY_STATIC run_library.c lenet.a -lm
 *
 * Prints the arguments and results, then the elements of the results, one in a line. The exit status is the code of the error.
 */
#define MYIA_RELAY_IMPLEMENTATION
#include "myia_relay.h"

#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void describe(const char *what, const myia_relay_value *v) {
    printf("# %s %s: %s[", what, v->name, v->dtype);
    for (int k = 0; k < v->ndim; k++) printf(k ? ", %lld" : "%lld", (long long)v->shape[k]);
    printf("]\n");
}

static void *contents(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    size_t room = 1 << 16;
    char *data = (char *)malloc(room);
    *size = 0;
    if (!file || !data) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(MYIA_RELAY_ARGUMENT);
    }
    for (size_t got; (got = fread(data + *size, 1, room - *size, file));)
        if ((*size += got) == room && !(data = (char *)realloc(data, room *= 2))) exit(MYIA_RELAY_NO_MEMORY);
    fclose(file);
    return data;
}

static double element(const myia_relay_value *v, const void *data, size_t k) {
    if (!strcmp(v->dtype, "float32")) return ((const float *)data)[k];
    if (!strcmp(v->dtype, "float64")) return ((const double *)data)[k];
    int positive = v->dtype[0] == 'u' || v->dtype[0] == 'b';
    switch (v->itemsize) {
    case 1: return positive ? (double)((const uint8_t *)data)[k] : (double)((const int8_t *)data)[k];
    case 2: return positive ? (double)((const uint16_t *)data)[k] : (double)((const int16_t *)data)[k]; /* a float16's bits */
    case 4: return positive ? (double)((const uint32_t *)data)[k] : (double)((const int32_t *)data)[k];
    default: return positive ? (double)((const uint64_t *)data)[k] : (double)((const int64_t *)data)[k];
    }
}

int main(int argc, char **argv) {
    myia_relay_program *p;
    double begin = now();
#ifdef MYIA_RELAY_STATIC
    int code = myia_relay_linked(&p), first = 1;
#else
    int code = myia_relay_load(argc > 1 ? argv[1] : "", &p), first = 2;
#endif
    if (code) {
        fprintf(stderr, "%s\n", myia_relay_message(NULL));
        return code;
    }
    printf("# %s for %s, loaded in %.1f ms\n", myia_relay_name(p), myia_relay_target(p), 1e3 * (now() - begin));
    for (int k = 0; k < myia_relay_inputs(p); k++) describe("argument", myia_relay_input(p, k));
    for (int k = 0; k < myia_relay_outputs(p); k++) describe("result", myia_relay_output(p, k));

    myia_relay_array in[16] = {{0}}, out[16] = {{0}};
    static int64_t shapes[16][8];
    for (int k = 0; k < myia_relay_inputs(p) && first + k < argc; k++) {
        char *colon = strchr(argv[first + k], ':');
        const myia_relay_value *v = myia_relay_input(p, k);
        size_t size, bytes = v->itemsize;
        if (colon) {
            *colon = 0;
            in[k].shape = shapes[k];
            for (char *text = colon + 1; *text && in[k].ndim < 8; text += *text == ',')
                shapes[k][in[k].ndim++] = strtoll(text, &text, 10);
        }
        in[k].data = contents(argv[first + k], &size);
        for (int axis = 0; axis < (colon ? in[k].ndim : v->ndim); axis++)
            bytes *= (size_t)(colon ? shapes[k][axis] : v->shape[axis]);
        int open = !colon && v->ndim && v->shape[0] < 0; /* the library says that a shape is missing */
        if (size != bytes && !open) {                    /* which it cannot see */
            fprintf(stderr, "%s has %lu bytes, and its shape wants others\n", v->name, (unsigned long)size);
            return MYIA_RELAY_ARGUMENT;
        }
    }
    for (int run = 0; run < 2 && !code; run++) { /* twice: what a call leaves behind must not change the next one */
        for (int k = 0; k < 16; k++) out[k].data = NULL, out[k].shape = NULL, out[k].dtype = NULL;
        code = myia_relay_run(p, in, out);
    }
    if (code) fprintf(stderr, "%s\n", myia_relay_message(p));
    for (int k = 0; k < myia_relay_outputs(p) && !code; k++) {
        size_t count = 1;
        for (int axis = 0; axis < out[k].ndim; axis++) count *= (size_t)out[k].shape[axis];
        for (size_t e = 0; e < count; e++) printf("%.17g\n", element(myia_relay_output(p, k), out[k].data, e));
    }
    for (int k = 0; k < 16; k++) free(in[k].data);
    myia_relay_close(p);
    return code;
}
