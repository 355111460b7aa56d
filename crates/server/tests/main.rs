//! The integration tests of `server` as one program, so that it is linked once.

mod browser;
mod browser_dumps;
mod guard;
mod modules;
mod queries;
mod reference;
mod site;
mod views;
