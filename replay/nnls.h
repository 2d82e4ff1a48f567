/* Least squares with coefficients >= 0, for a handful of unknowns.
 *
 * Rows are added one by one into the normal equations, whose columns are scaled to unit length; the
 * solution is found by the active sets of Lawson and Hanson (Solving Least Squares Problems, 1974).
 * Cost O(n^2) a row, O(n^4) at most to solve. A column that is always 0 gets 0, and one that others
 * make up (to 1e-12) too.
 */
#ifndef KV_REPLAY_NNLS_H
#define KV_REPLAY_NNLS_H

#define NNLS_MAX 40

typedef struct Nnls {
    int n;
    double ata[NNLS_MAX][NNLS_MAX], atb[NNLS_MAX], btb;
} Nnls;

void nnls_init(Nnls *self, int n); /* n <= NNLS_MAX */
/* Adds sum (x . row - b)^2. */
void nnls_add(Nnls *self, const double *row, double b);
/* Returns the sum of squares that is left. */
double nnls_solve(const Nnls *self, double *ret);

#endif
