//! The output of the stream of VM events.

use std::path::Path;

use agent_core::options::{Format, Options, StartError, Target, USUAL_EVENT_FILE};
use vm_hotspot::host::{HostSetup, Sink};

use crate::collector;
use crate::file::{self, Named};
use crate::output::{dial, named};

/// Opens the output of events and returns it with its name for messages; `None` if no events are requested.
pub(crate) fn open(options: &Options) -> Result<Option<(HostSetup, String)>, StartError> {
    let Some(events) = &options.events else {
        return Ok(None);
    };
    let (sink, place) = match &events.target {
        Target::File(name) => {
            let name = free_name(options, name);
            let refused = |error: std::io::Error| {
                StartError::ProfileFile(name.clone(), Some(error.to_string()))
            };
            let (file, name) = file::create(&name, Format::Binary).map_err(refused)?;
            let place = named(&name);
            let file = Named::new(file, place.clone(), true);
            (Sink::File(Box::new(file)), place)
        }
        Target::Unix(path) => {
            let place = format!("a collector at {path}");
            let refused =
                |error: std::io::Error| StartError::Stranger(place.clone(), error.to_string());
            let stream = collector::connect(Path::new(path)).map_err(refused)?;
            (Sink::Socket(stream), place)
        }
        Target::Net { host, port } => {
            let (secret, insecure) = (&options.output.secret_file, options.output.insecure);
            // The low 16 bits, as for a profile.
            let stream = dial((host, *port as u16), secret.as_deref(), insecure)?;
            (
                Sink::Socket(stream),
                format!("a collector at {host}:{port}"),
            )
        }
    };
    let setup = HostSetup {
        interval: events.interval,
        depth: events.depth as usize,
        sink,
    };
    Ok(Some((setup, place)))
}

/// Returns another name if a file has this one, unless the options name it and allow the file to be replaced.
fn free_name(options: &Options, name: &str) -> String {
    let may_replace = options.output.force && name != USUAL_EVENT_FILE;
    match may_replace {
        true => name.to_owned(),
        false => file::free_name(name, Format::Binary),
    }
}
