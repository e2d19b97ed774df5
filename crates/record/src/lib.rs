//! Histogram slots, intervals, counters and their merge.
