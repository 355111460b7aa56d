//! The integration tests of `agent` as one program, so that it is linked once.

mod attaching;
mod behaviour;
mod common;
mod consumers;
mod doors;
mod estimates;
mod exact_counts;
mod exhausted;
mod jni_references;
mod join;
mod living;
mod lost_peers;
mod monitors;
mod native_dump;
mod native_heap;
mod native_threads;
mod peers;
mod refused;
mod replay;
mod runtimes;
mod sampling;
mod scale;
mod stopped;
mod unseen;
mod vm_dumps;
mod vm_events;
