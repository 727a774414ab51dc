//! Random order from a seed that is printed, so that a run can be repeated in the same order.

pub use iotomy_stats::order::Random as Order;
