//! Tests of the memory timeline.
