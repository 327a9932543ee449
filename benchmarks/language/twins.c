/* The programs of the benchmark as somebody would write them in C. Compiled twice: with CHECKED every sum, difference and
   product of what are Python ints is tested for overflow, otherwise they wrap. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

#ifdef CHECKED
static _Noreturn void overflow(void) { abort(); }
#define CHECK(name, type) \
    static inline i64 name(i64 a, i64 b) { i64 r; if (__builtin_##type##_overflow(a, b, &r)) overflow(); return r; }
CHECK(add, add)
CHECK(sub, sub)
CHECK(mul, mul)
#else
static inline i64 add(i64 a, i64 b) { return (i64)((uint64_t)a + (uint64_t)b); }
static inline i64 sub(i64 a, i64 b) { return (i64)((uint64_t)a - (uint64_t)b); }
static inline i64 mul(i64 a, i64 b) { return (i64)((uint64_t)a * (uint64_t)b); }
#endif

i64 fib(i64 n) { return n < 2 ? n : add(fib(sub(n, 1)), fib(sub(n, 2))); }

i64 collatz(i64 limit) {
    i64 total = 0;
    for (i64 start = 1; start < limit; start++) {
        i64 n = start;
        while (n != 1) {
            if (n % 2 == 0) n = n / 2;
            else n = add(mul(3, n), 1);
            total = add(total, 1);
        }
    }
    return total;
}

void mandelbrot(i64 height, i64 width, i64 *image, i64 limit) {
    for (i64 i = 0; i < height; i++)
        for (i64 j = 0; j < width; j++) {
            double cr = 3.0 * (double)j / (double)width - 2.0, ci = 2.0 * (double)i / (double)height - 1.0;
            double x = 0.0, y = 0.0;
            i64 n = 0;
            while (n < limit && x * x + y * y <= 4.0) {
                double t = x * x - y * y + cr;
                y = 2.0 * x * y + ci;
                x = t;
                n = add(n, 1);
            }
            image[i * width + j] = n;
        }
}

i64 edit_distance(i64 n, const i64 *a, i64 m, const i64 *b) {
    i64 w = m + 1, *d = calloc((size_t)((n + 1) * w), sizeof *d);
    for (i64 i = 0; i <= n; i++) d[i * w] = i;
    for (i64 j = 0; j <= m; j++) d[j] = j;
    for (i64 i = 1; i <= n; i++)
        for (i64 j = 1; j <= m; j++) {
            i64 cost = a[i - 1] == b[j - 1] ? 0 : 1;
            i64 best = add(d[(i - 1) * w + j], 1), left = add(d[i * w + j - 1], 1);
            if (left < best) best = left;
            i64 both = add(d[(i - 1) * w + j - 1], cost);
            d[i * w + j] = both < best ? both : best;
        }
    i64 result = d[n * w + m];
    free(d);
    return result;
}

void nbody(i64 n, double (*p)[3], double (*v)[3], const double *masses, i64 steps, double dt) {
    for (i64 step = 0; step < steps; step++) {
        for (i64 i = 0; i < n; i++)
            for (i64 j = i + 1; j < n; j++) {
                double dx = p[i][0] - p[j][0], dy = p[i][1] - p[j][1], dz = p[i][2] - p[j][2];
                double d2 = dx * dx + dy * dy + dz * dz;
                double mag = dt / (d2 * sqrt(d2)), mi = masses[i] * mag, mj = masses[j] * mag;
                v[i][0] -= dx * mj;
                v[i][1] -= dy * mj;
                v[i][2] -= dz * mj;
                v[j][0] += dx * mi;
                v[j][1] += dy * mi;
                v[j][2] += dz * mi;
            }
        for (i64 i = 0; i < n; i++) {
            p[i][0] += dt * v[i][0];
            p[i][1] += dt * v[i][1];
            p[i][2] += dt * v[i][2];
        }
    }
}

typedef struct node { struct node *left, *right; } node;

static node *make_tree(i64 depth) {
    node *n = malloc(sizeof *n);
    if (depth == 0) n->left = n->right = NULL;
    else n->left = make_tree(sub(depth, 1)), n->right = make_tree(sub(depth, 1));
    return n;
}

static i64 count_nodes(const node *n) { return n ? add(add(1, count_nodes(n->left)), count_nodes(n->right)) : 0; }

static void free_tree(node *n) {
    if (n->left) free_tree(n->left), free_tree(n->right);
    free(n);
}

static i64 one_tree(i64 depth) {
    node *n = make_tree(depth);
    i64 count = count_nodes(n);
    free_tree(n);
    return count;
}

i64 binary_trees(i64 depth) {
    i64 total = one_tree(add(depth, 1));
    node *long_lived = make_tree(depth);
    for (i64 d = 4; d < add(depth, 1); d += 2)
        for (i64 k = 0; k < (i64)1 << add(sub(depth, d), 4); k++) total = add(total, one_tree(d));
    total = add(total, count_nodes(long_lived));
    free_tree(long_lived);
    return total;
}
