//! Commands to a watched program, by their names in the API.

use crate::recording::program::Recording;
use crate::recording::state::Live;
use requests::Fault;
use requests::Params;
use std::sync::Arc;

/// Every command with its parameters.
const COMMANDS: [(&str, &[&str]); 13] = [
    ("gc", &[]),
    ("dump", &[]),
    ("record", &["mode", "interval", "depth", "native"]),
    ("stop", &[]),
    ("mark", &["text"]),
    ("save", &[]),
    ("schedule", &["minutes"]),
    ("options", &["text"]),
    ("cpu", &["on"]),
    ("own", &["on"]),
    ("snapshot", &[]),
    ("finish", &[]),
    ("interval", &["ms"]),
];

/// Carries out a command by its name in the API; for a heap dump, returns its number.
///
/// # Errors
/// There is no such command, a parameter is wrong, or the program refuses.
pub fn carry_out(live: &Arc<Live>, name: &str, params: &Params) -> Result<Option<usize>, Fault> {
    let failed = Fault::failed;
    let command = COMMANDS.iter().find(|command| command.0 == name);
    let (_, parameters) = command.ok_or_else(no_command)?;
    params.check_names(name, parameters)?;
    match name {
        "gc" => live.force_gc().map_err(failed)?,
        "dump" => return live.dump().map(Some).map_err(failed),
        "record" => live
            .start_recording(recording(live, params)?)
            .map_err(failed)?,
        "stop" => live.stop_recording().map_err(failed)?,
        "mark" => live.mark(
            params
                .get("text")
                .unwrap_or("Mark")
                .chars()
                .take(200)
                .collect::<String>(),
        ),
        "save" => {
            live.save().map_err(failed)?;
        }
        "schedule" => {
            let minutes = params.number("minutes", 0)? as u64;
            live.save_every(minutes).map_err(Fault::bad)?;
        }
        "options" => {
            let text = params.get("text").unwrap_or_default();
            live.choose(text).map_err(Fault::bad)?;
        }
        "finish" => live.finish(),
        "snapshot" => live.snapshot().map_err(failed)?,
        "cpu" => live.sample_cpu(params.switch("on")?).map_err(failed)?,
        "own" => live.set_own_code(params.switch("on")?).map_err(failed)?,
        "interval" => {
            let ms = params.number("ms", 0)? as u64;
            live.set_interval(ms).map_err(Fault::bad)?;
        }
        _ => return Err(no_command()),
    }
    Ok(None)
}

fn no_command() -> Fault {
    let names = COMMANDS.map(|command| command.0).join(", ");
    Fault::not_found(format!("there is no such command; expected one of {names}"))
}

/// The recording that the parameters request. The agent that is connected keeps its mode.
fn recording(live: &Live, params: &Params) -> Result<Recording, Fault> {
    let running = live.status().borrow().recording.clone();
    let running = running.filter(|it| it.connected);
    let running = running.map(|it| it.recording.mode());
    let mode = match (params.get("mode"), running) {
        (Some(mode), Some(running)) if mode != running => {
            return Err(Fault::bad(format!(
                "mode={mode}: the agent in the program records with mode={running} as long as it is connected; \
                 mode={running} continues this recording. For mode={mode}, stop it, end this server, and start it again"
            )));
        }
        (mode, running) => mode.or(running),
    };
    let depth = params
        .number("depth", Recording::DEPTH as usize)?
        .clamp(1, 1024) as u32;
    let native = match params.get("native") {
        None | Some("") => None,
        Some(_) => Some(params.number("native", 0)? as u64),
    };
    match mode {
        None | Some("full") => Ok(Recording::Full { depth, native }),
        Some("sampled") => {
            let interval = params.number("interval", Recording::INTERVAL as usize)? as u64;
            if !(1..=Recording::MOST_INTERVAL).contains(&interval) {
                let most = Recording::MOST_INTERVAL;
                return Err(Fault::bad(format!(
                    "interval={interval}: expected 1 to {most} bytes"
                )));
            }
            Ok(Recording::Sampled {
                interval,
                depth,
                native,
            })
        }
        Some(other) => Err(Fault::bad(format!(
            "mode={other}: expected full or sampled"
        ))),
    }
}
