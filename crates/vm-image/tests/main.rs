//! Images of running, hung and dead VMs as heap dumps.

mod common;
mod cores;
mod damaged;
mod equality;
mod hung;
