"""Options and values that users of LIBSVM, LIBLINEAR and liquidSVM would type, with what to type here instead."""

from __future__ import annotations

# options that do not exist here
UNKNOWN = {
    "-h": "LIBSVM's shrinking has no switch here. For help, type --help.",
    "-d": "The degree of the polynomial kernel is --degree.",
    "-r": "LIBSVM's coef0 is --coef0; liquidSVM's random seed is --seed.",
    "-n": "Nu of the one-class SVM is --nu, with -m one-class; nu-SVM is not available: give the cost with -C.",
    "-B": "LIBLINEAR's bias: the linear methods always have one; svm has it with --offset.",
    "-T": "The number of processes is -j.",
    "-l": "liquidSVM's lambda is given as the cost, C = 1/(2 lambda n) for n training rows of a cell: -C.",
    "-f": "The number of folds is -v.",
    "-k": "The kernel is -t.",
    "-S": "liquidSVM's -S 2, the hinge loss without an offset, is the default; its least squares (0 and 1) are "
    "--loss squared-error for classes and least-squares for values, its quantile (3) and expectile (4) solvers --loss "
    "quantile and expectile.",
    "-R": "The selection among the fold models is --select.",
    "-W": "Weights of rows are --weights FILE, those of classes -w LABEL WEIGHT; liquidSVM's kinds of tasks are "
    "--multiclass ova and ava.",
}

# values of options that exist here
KERNELS = {
    "0": "LIBSVM's 0 is -t linear",
    "1": "LIBSVM's 1 is -t polynomial",
    "2": "LIBSVM's 2 is -t gaussian, the default",
    "3": "LIBSVM's 3, the sigmoid kernel, is not available",
    "4": "LIBSVM's 4, a precomputed kernel, is not available",
    "rbf": "the radial basis function kernel is -t gaussian",
    "poly": "the polynomial kernel is -t polynomial",
}
PARTITIONS = {
    "0": "liquidSVM's 0 is -P none",
    "1": "liquidSVM's 1 SIZE is -P chunks -c SIZE",
    "2": "liquidSVM's 2, a number of chunks, is -P chunks -c ROWS/NUMBER",
    "3": "liquidSVM's 3, cells of a radius, is not available; cells of a size are -P voronoi -c SIZE",
    "4": "liquidSVM's 4 SIZE is -P voronoi -c SIZE",
    "5": "liquidSVM's 5, overlapping cells, is not available; try -P voronoi -c SIZE",
    "6": "liquidSVM's 6 SIZE is -P voronoi -c SIZE",
}
SOLVERS = {
    "0": "LIBSVM's 0, C-SVC, is what -m svm trains, without -s; LIBLINEAR's 0, logistic regression, is not available",
    "1": "LIBLINEAR's 1 is -m linear --loss squared-hinge -s sdca; nu-SVM is not available",
    "2": "LIBLINEAR's 2 is -m linear --loss squared-hinge -s primal; LIBSVM's 2, one-class SVM, is -m one-class",
    "3": "LIBSVM's 3, epsilon-SVR, is --loss epsilon-insensitive, with its -p; LIBLINEAR's 3 is -m linear -s sdca",
    "4": "nu-SVR is not available; LIBSVM's 3, epsilon-SVR, is --loss epsilon-insensitive",
    "11": "LIBLINEAR's 11 is -m linear --loss squared-epsilon-insensitive, with its -p",
    "12": "LIBLINEAR's 12 is -m linear --loss squared-epsilon-insensitive, with its -p",
    "13": "LIBLINEAR's 13 is -m linear --loss epsilon-insensitive, with its -p",
}
NAMES = {"kernel": KERNELS, "partition": PARTITIONS, "solver": SOLVERS}
METHOD = "-m is the method here; LIBSVM's cache size has no counterpart (--memory bounds the whole run)"
COST = "-c is the number of rows in a cell, a whole number from 10; the cost C is -C"
