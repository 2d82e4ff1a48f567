/* attn-lab check | time | stress: see the files of these names. */
#include "lab.h"

#include <string.h>

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int, char **);
    } jobs[] = {{"check", lab_check}, {"time", lab_time}, {"stress", lab_stress}};
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no CUDA device: skipped\n");
        return 77;
    }
    for (int i = 0; argc > 1 && i < 3; i++)
        if (strcmp(argv[1], jobs[i].name) == 0) {
            const int status = jobs[i].run(argc - 1, argv + 1);
            if (fflush(stdout) == 0 && ferror(stdout) == 0)
                return status;
            fprintf(stderr, "attn-lab: standard output: writing failed\n");
            return 1;
        }
    fprintf(stderr, "usage: attn-lab check|time|stress ...\n");
    return 2;
}
