//! The integration tests of `agent-core` as one program, so that it is linked once.

mod consumers;
mod options_oracle;
mod recorder;
mod replay_oracle;
mod scripted;
mod teller;
mod unloaded_classes;
mod wall_clock;
