//! Laws, verdict, thresholds and the closed forms they are checked against.
