/* Least squares with coefficients >= 0, for a handful of unknowns.
 *
 * Rows are added one by one into the normal equations; the solution is found by cyclic coordinate
 * descent on them (each coordinate set to its best value >= 0, until nothing moves), which
 * converges because the problem is convex. Columns are scaled to unit length first. Cost O(n^2) a
 * row and a sweep. A column that is always 0 gets 0.
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
