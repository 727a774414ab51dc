//! Random order from a printed seed, so that a run can be repeated in the same order.

pub use iotomy_stats::order::Random as Order;
