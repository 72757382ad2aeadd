"""Names of the losses of classes and of values (`losses`), for those who only read options."""

HINGE, SQUARED_HINGE, SQUARED_ERROR = "hinge", "squared-hinge", "squared-error"
LEAST_SQUARES, QUANTILE, EXPECTILE, ABSOLUTE = "least-squares", "quantile", "expectile", "absolute"
INSENSITIVE, SQUARED_INSENSITIVE, HUBER = "epsilon-insensitive", "squared-epsilon-insensitive", "huber"
LOSSES = (LEAST_SQUARES, QUANTILE, EXPECTILE, ABSOLUTE, INSENSITIVE, SQUARED_INSENSITIVE, HUBER)
LEVELLED = (QUANTILE, EXPECTILE)  # losses that have a level
WITH_EPSILON = (INSENSITIVE, SQUARED_INSENSITIVE, HUBER)
