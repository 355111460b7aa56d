//! heap-analysis
