/* holdout_hot.h - the loop over the slopes of holdout.c, which are as many as the kernel's entries. */

/* Multiplies a row of the kernel (t) by the derivative by it, which is `by_kernel` times `times`, adds it to the sums of
 * columns (t), and returns its sum. */
static double holdout_row(float *row, const float *by_kernel, float times, int64_t t, double *columns)
{
    const int64_t lanes = LSVM_LANES / 2;
    vdouble part = {0};
    double sum = 0;
    int64_t j = 0;
    for (; j + lanes <= t; j += lanes) {
        vhalf k, slope;
        vdouble column;
        memcpy(&k, row + j, sizeof k);
        memcpy(&slope, by_kernel + j, sizeof slope);
        memcpy(&column, columns + j, sizeof column);
        k *= slope * times;
        const vdouble wide = widen_f32(k);
        part += wide, column += wide;
        memcpy(row + j, &k, sizeof k);
        memcpy(columns + j, &column, sizeof column);
    }
    for (; j < t; j++) {
        row[j] *= by_kernel[j] * times;
        sum += (double)row[j];
        columns[j] += (double)row[j];
    }
    for (int64_t l = 0; l < lanes; l++)
        sum += part[l];
    return sum;
}
