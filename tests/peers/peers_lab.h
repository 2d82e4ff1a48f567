/* What the parts of peers-lab share: a cell, an entry (a route or a peer with its settings) set up
 * for it, and the run. Beside tests/gpu/lab.h, whose batches and checks it uses. Failures of CUDA
 * end the program; what a peer cannot do is a note on its lane.
 */
#ifndef KV_TESTS_PEERS_LAB_H
#define KV_TESTS_PEERS_LAB_H

#include "../gpu/lab.h"

#include "kernels/peers/peers.h"

enum { MAX_ROWS = 256, N_ENTRIES = 15, MAX_ROUNDS = 64, WALLS = 9, GRAPHS = 9 };

enum { BIMODAL = -1, ZIPF = -2, UNIFORM = -3 };

typedef struct Cell {
    const char *family;
    int len; /* of every row, or a family */
    int rows, q_heads, kv_heads, head_dim;
} Cell;

/* What is run: one of our routes, or a peer with settings. */
typedef struct Entry {
    const char *label, *peer; /* peer NULL: ours */
    AttnRoute route;
    PeerSettings settings;
    int is_default; /* a peer as its users get it */
} Entry;
extern const Entry entries[N_ENTRIES];

typedef struct Lane { /* an entry set up for the cell in hand */
    const Entry *entry;
    AttnCuda *cuda;
    AttnPlan plan;
    AttnPlanConfig plan_config;
    const PeerOps *ops;
    Peer *peer;
    double kernel[MAX_ROUNDS], kernel_us, graph_us, plan_us, wall_us, tables_us;
    long long plan_bytes;
    int launches;
    Errors errors;
    char note[300];
    int runs; /* 0: not in this cell, see note */
} Lane;

typedef struct Lab {
    AttnPool pool, view; /* all of it; what the cell in hand uses */
    int64_t bytes;
    double rate; /* bytes/us */
    FILE *csv;
    const char *commit, *cells, *routes;
    char gpu[300], driver[32], date[32];
    int sms, rounds, check;
    double seconds, started;
    cudaStream_t stream;
    cudaEvent_t e0, e1;
    Random random;
    char summary[64][200];
    int n_summary;
    Lane lane[N_ENTRIES];
    int **tables; /* [sets] host copies */
    uint16_t *first_out;
    int turn; /* which set is next: by the time one comes again, L2 holds others */
} Lab;

double lab_now_us(void);

/* Sets the lane up for the batch, or leaves a note. */
void lane_open(const Lab *lab, Lane *l, const Batch *b);
void lane_free(Lane *l);
void lane_note(Lane *l, const char *text);
/* Everything up to the launches for set `set`; the plan; the launches. 0 with a note on failure. */
int lane_tables(Lab *lab, Lane *l, const Batch *b, int set);
int lane_plan(Lab *lab, Lane *l, const Batch *b);
int lane_launch(Lab *lab, Lane *l, const Batch *b, int set);

void lane_check(Lab *lab, Lane *l, const Batch *b);

double lab_between(const Lab *lab);
double lab_median(double *x, int n);
void lab_time_kernels(Lab *lab, const Batch *b);
void lane_time_wall(Lab *lab, Lane *l, const Batch *b);
void lane_time_graph(Lab *lab, Lane *l, const Batch *b);

void lab_write_header(FILE *csv);
void lab_write_lane(const Lab *lab, const Cell *c, const Batch *b, const Lane *l);
void lab_summarise(Lab *lab, const Cell *c, const Batch *b);
#endif
