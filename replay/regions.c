#include "replay/regions.h"

#include <math.h>

#include "base/error.h"
#include "replay/model.h"

enum { MAX_ROWS = 128, FIRST_LENGTH = 7, LAST_LENGTH = 17 }; /* powers of two */

typedef enum { EQUAL, SPREAD, ONE_LONG, SKEWS } Skew;
static const char *const skews[] = {"equal", "spread", "one-long"};

/* Half octaves: 1, 1.5, 2, 3, 4, 6 ... */
static gint32 half_octave(gint i)
{
    return i % 2 == 0 ? 1 << i / 2 : 3 << (i / 2 - 1);
}

static gint32 length_of(Skew skew, gint32 rows, gint32 longest, gint32 r)
{
    const gint32 least = MAX(longest / 16, 1);
    if (skew == EQUAL || r == 0)
        return longest;
    if (skew == ONE_LONG)
        return least;
    return longest - (gint32)((gint64)(longest - least) * r / (rows - 1));
}

typedef struct Guess { /* the cheapest two */
    const char *route, *second;
    double us, second_us;
} Guess;

static void take(Guess *guess, const char *route, double us)
{
    if (us < guess->us) {
        guess->second = guess->route;
        guess->second_us = guess->us;
        guess->route = route;
        guess->us = us;
    } else if (us < guess->second_us) {
        guess->second = route;
        guess->second_us = us;
    }
}

static gboolean guess_at(const DeviceProfile *profile, const AttnShape *shape, const gint32 *lens,
                         gint32 rows, Guess *ret, GError **error)
{
    *ret = (Guess){NULL, NULL, (double)INFINITY, (double)INFINITY};
    for (int route = 0; route < ATTN_ROUTE_MAX; route++) {
        const char *name = attn_route_name((AttnRoute)route);
        const LearnedRoute *learned = device_profile_learned(profile, name);
        AttnPlanConfig config;
        AttnCounts counts;
        if (learned == NULL)
            continue;
        attn_plan_config_init(&config, (AttnRoute)route, profile->workers);
        if (attn_plan_count(&counts, &config, shape, rows, lens) != ATTN_OK) {
            g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s",
                        attn_strerror(ATTN_NO_MEMORY));
            return FALSE;
        }
        take(ret, name, model_learned(learned, profile, shape, profile->workers, &counts));
    }
    if (ret->route != NULL)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                "regions: the device profile of %s knows no built-in route: nothing to compare",
                profile->device);
    return FALSE;
}

static void put_us(FILE *f, double us)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    fputc(',', f);
    if (isfinite(us))
        fputs(g_ascii_formatd(text, sizeof text, "%.2f", us), f);
}

gboolean regions_write(const DeviceProfile *profile, const AttnShape *shape, OutFile *csv,
                       GError **error)
{
    FILE *f = out_file_stream(csv);
    gint32 lens[MAX_ROWS];
    fputs("rows,longest,skew,route,expected_us,second,second_us\n", f);
    for (Skew skew = EQUAL; skew < SKEWS; skew++)
        for (gint i = 0; half_octave(i) <= MAX_ROWS; i += i == 0 ? 2 : 1)
            for (gint k = 2 * FIRST_LENGTH; k <= 2 * LAST_LENGTH; k++) {
                const gint32 rows = half_octave(i), longest = half_octave(k);
                Guess guess;
                for (gint32 r = 0; r < rows; r++)
                    lens[r] = length_of(skew, rows, longest, r);
                if (!guess_at(profile, shape, lens, rows, &guess, error))
                    return FALSE;
                fprintf(f, "%d,%d,%s,%s", rows, longest, skews[skew], guess.route);
                put_us(f, guess.us);
                fprintf(f, ",%s", guess.second != NULL ? guess.second : "");
                put_us(f, guess.second_us);
                fputc('\n', f);
            }
    return out_file_ok(csv, error);
}
