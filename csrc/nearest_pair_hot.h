/* nearest_pair_hot.h - two centres of sampled rows, see nearest.h. Included by level_unfused.h. */
/* The value that would be at place k if the n values were sorted; reorders them (Hoare's quickselect). */
static double select_place(double *value, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const double a = value[low], b = value[low + (high - low) / 2], c = value[high];
        const double pivot = a < b ? (b < c ? b : (a < c ? c : a)) : (a < c ? a : (b < c ? c : b));
        int64_t i = low, j = high;
        while (i <= j) {
            while (value[i] < pivot)
                i++;
            while (value[j] > pivot)
                j--;
            if (i > j)
                break;
            const double other = value[i];
            value[i++] = value[j];
            value[j--] = other;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return value[k];
}

/* Sets out to the row of the largest |x - centre|^2, of which |centre|^2 is left out. */
static int farthest(const struct lsvm_rows *m, const int64_t *rows, int64_t n, const double *squares,
                    const double *centre, double *projection, double *out)
{
    const int code = nearest_project(m, rows, n, centre, projection);
    int64_t best = 0;
    if (code)
        return code;
    for (int64_t i = 1; i < n; i++)
        if (squares[i] - 2 * projection[i] > squares[best] - 2 * projection[best])
            best = i;
    memset(out, 0, (size_t)m->d * sizeof *out);
    add_row(m, rows[best], out);
    return LSVM_OK;
}

static int farthest_first(const struct lsvm_rows *m, const int64_t *rows, int64_t n, double *far, double *work)
{
    const int64_t d = m->d;
    double *squares = work, *projection = work + n, *mean = work + 2 * n;
    int code = nearest_squares(m, rows, n, squares);
    if (code)
        return code;
    memset(mean, 0, (size_t)d * sizeof *mean);
    code = nearest_total(m, rows, n, mean);
    for (int64_t j = 0; j < d; j++)
        mean[j] /= (double)n;
    if (!code)
        code = farthest(m, rows, n, squares, mean, projection, far);
    if (!code)
        code = farthest(m, rows, n, squares, far, projection, far + d);
    return code;
}

static int64_t count_up_to(const double *value, int64_t n, double most)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += value[i] <= most;
    return count;
}

/* The centres become the means of the n_low rows of lowest projection, ties by order, and of the others. is_high is 0
 * and 1 for these; returns whether it changed. */
static int move_pair(const struct lsvm_rows *m, const int64_t *rows, int64_t n, int64_t n_low, const double *projection,
                     double last, double *pair, double *is_high)
{
    const int64_t d = m->d;
    int64_t ties = n_low;
    int changed = 0;
    for (int64_t i = 0; i < n; i++)
        ties -= projection[i] < last;
    memset(pair, 0, (size_t)(2 * d) * sizeof *pair);
    for (int64_t i = 0; i < n; i++) {
        const int high = projection[i] > last || (projection[i] == last && --ties < 0);
        changed |= (is_high[i] != 0) != high;
        is_high[i] = high;
        add_row(m, rows[i], pair + high * d);
    }
    for (int64_t j = 0; j < d; j++) {
        pair[j] /= (double)n_low;
        pair[d + j] /= (double)(n - n_low);
    }
    return changed;
}

static int nearest_pair(const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                        const struct lsvm_nearest_steps *steps, double *far, double *pair, double *work)
{
    const int64_t d = m->d, least = steps->least;
    double *projection = work, *scratch = work + n, *is_high = work + 2 * n, *direction = work + 3 * n;
    int code = farthest_first(m, rows, n, far, work);
    if (code)
        return code;
    memcpy(pair, far, (size_t)(2 * d) * sizeof *pair);
    memset(is_high, 0, (size_t)n * sizeof *is_high);
    for (int64_t step = 0; step < steps->halves + steps->nearest; step++) {
        for (int64_t j = 0; j < d; j++)
            direction[j] = pair[d + j] - pair[j];
        code = nearest_project(m, rows, n, direction, projection);
        if (code)
            return code;
        const double bisector = (vector_by_vector(pair + d, pair + d, d) - vector_by_vector(pair, pair, d)) / 2;
        const int64_t nearer = count_up_to(projection, n, bisector);
        int64_t n_low = nearer < least ? least : nearer > n - least ? n - least : nearer;
        if (step < steps->halves)
            n_low = n / 2;
        double last = bisector;
        if (n_low != nearer) {
            memcpy(scratch, projection, (size_t)n * sizeof *scratch);
            last = select_place(scratch, n, n_low - 1);
        }
        if (!move_pair(m, rows, n, n_low, projection, last, pair, is_high) && step >= steps->halves)
            break;
    }
    return LSVM_OK;
}
