/* The objectives of `benchmarks.derivatives` in plain C: what a compiler makes of loops without further thought. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

double gmm(const double *alphas, const double *means, const double *icf, const double *x, double gamma, int64_t m,
           double constant, int64_t n, int64_t k, int64_t d) {
    int64_t width = d * (d + 1) / 2;
    double *eq = malloc(k * d * sizeof(double)), *sumq = malloc(k * sizeof(double)), *t = malloc(k * sizeof(double));
    double *c = malloc(d * sizeof(double));
    double total = 0.0, prior = 0.0, all = 0.0;
    for (int64_t j = 0; j < k; j++) {
        sumq[j] = 0.0;
        for (int64_t r = 0; r < width; r++) {
            double q = icf[j * width + r];
            if (r < d) {
                eq[j * d + r] = exp(q);
                sumq[j] += q;
                prior += eq[j * d + r] * eq[j * d + r];
            } else {
                prior += q * q;
            }
        }
        all += sumq[j];
    }
    for (int64_t p = 0; p < n; p++) {
        double most = -INFINITY, sum = 0.0;
        for (int64_t j = 0; j < k; j++) {
            double s = 0.0;
            const double *low = icf + j * width + d;
            for (int64_t r = 0; r < d; r++) c[r] = x[p * d + r] - means[j * d + r];
            for (int64_t r = 0; r < d; r++) {
                double y = eq[j * d + r] * c[r];
                for (int64_t i = 0; i < r; i++) y += low[i * (d - 1) - i * (i - 1) / 2 + r - i - 1] * c[i];
                s += y * y;
            }
            t[j] = alphas[j] + sumq[j] - 0.5 * s;
            if (t[j] > most) most = t[j];
        }
        for (int64_t j = 0; j < k; j++) sum += exp(t[j] - most);
        total += most + log(sum);
    }
    double most = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < k; j++) most = alphas[j] > most ? alphas[j] : most;
    for (int64_t j = 0; j < k; j++) sum += exp(alphas[j] - most);
    free(eq), free(sumq), free(t), free(c);
    return constant + total - n * (most + log(sum)) + 0.5 * gamma * gamma * prior - m * all;
}

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

double lstm(const double *main, const double *extra, const double *state, const double *seq, int64_t l, int64_t c, int64_t b) {
    double *h = malloc(l * b * sizeof(double)), *cell = malloc(l * b * sizeof(double)), *in = malloc(b * sizeof(double));
    double total = 0.0;
    for (int64_t k = 0; k < l; k++)
        for (int64_t i = 0; i < b; i++) h[k * b + i] = state[2 * k * b + i], cell[k * b + i] = state[(2 * k + 1) * b + i];
    for (int64_t t = 0; t < c - 1; t++) {
        for (int64_t i = 0; i < b; i++) in[i] = seq[t * b + i] * extra[i];
        for (int64_t k = 0; k < l; k++) {
            const double *w = main + 8 * k * b, *v = w + 4 * b;
            for (int64_t i = 0; i < b; i++) {
                double f = sigmoid(in[i] * w[i] + v[i]), g = sigmoid(h[k * b + i] * w[b + i] + v[b + i]);
                double o = sigmoid(in[i] * w[2 * b + i] + v[2 * b + i]), s = tanh(h[k * b + i] * w[3 * b + i] + v[3 * b + i]);
                cell[k * b + i] = cell[k * b + i] * f + g * s;
                h[k * b + i] = in[i] = o * tanh(cell[k * b + i]);
            }
        }
        double sum = 2.0;
        for (int64_t i = 0; i < b; i++) sum += exp(in[i] = in[i] * extra[b + i] + extra[2 * b + i]);
        sum = log(sum);
        for (int64_t i = 0; i < b; i++) total += seq[(t + 1) * b + i] * (in[i] - sum);
    }
    free(h), free(cell), free(in);
    return -total / ((c - 1) * b);
}

double tree(double x, double w, int64_t depth) {
    if (depth == 0) return x;
    return tanh(w * tree(x * 0.9 + 0.1, w, depth - 1) + tree(x - 0.05, w, depth - 1) * 0.5);
}
