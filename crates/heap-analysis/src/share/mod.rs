//! Scanning and exporting: texts that look like secrets ([`secrets`]), a dump without its texts ([`redact`]), a part
//! of a dump as a dump ([`extract`]), and tables for other programs ([`export`]).

pub mod export;
pub mod extract;
pub mod redact;
pub mod secrets;
