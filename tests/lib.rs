//! Tests of the promises that the whole workspace makes, one file a promise under `tests/`.
