//! heap-graph
