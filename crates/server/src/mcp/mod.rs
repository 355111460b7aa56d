//! `tenure mcp`: views of heap dumps, profiles and a running program as tools of the Model Context Protocol, on
//! standard input and output. A line is a message of JSON-RPC 2.0; calls are answered concurrently, each with a JSON
//! text of limited size whose object ids other calls accept (docs/reference/mcp.md). It writes only the index, and the
//! heap dumps that a client takes of the program.
//!
//! In reading order: `message` (the content of a line, and the revision of the protocol), `subjects` (what tools can
//! name), `table` (the tools), `tools` (the schemas of their arguments), `call` (a call of a view of a dump),
//! `program` (or of a running program), `resources` (reports), `bound` (limits the size of answers).

mod bound;
mod call;
mod message;
mod program;
mod resources;
mod subjects;
mod table;
mod tools;

pub use subjects::Subjects;
pub(crate) use tools::reference;

use message::{Era, Fault, Incoming, Request};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest message that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// The most concurrent calls.
const MOST_CALLS: usize = 16;

/// How long running calls may still take after the end of the input. A client may end the process sooner.
const GRACE: Duration = Duration::from_secs(30);

/// How long cancelled calls may take. One that waits for a program that is stopped does not end.
const LAST: Duration = Duration::from_secs(2);

/// Calls that are being answered.
#[derive(Default)]
struct Calls {
    /// What cancels them, by the text of their ids.
    by_id: HashMap<String, Arc<AtomicBool>>,
    /// Their number, with those whose answer is being written.
    running: usize,
}

impl Calls {
    /// How many of them are not cancelled.
    fn wanted(&self) -> usize {
        let all = self.by_id.values();
        let cancelled = all.filter(|cancel| cancel.load(Ordering::Relaxed)).count();
        self.running.saturating_sub(cancelled)
    }
}

/// What all threads share.
struct Server<W> {
    subjects: Subjects,
    output: Mutex<W>,
    calls: Mutex<Calls>,
    /// Notified when a call ends.
    ended: Condvar,
    /// True after a client of an older revision has sent `initialize`.
    introduced: AtomicBool,
}

/// Answers messages until the input ends.
///
/// # Errors
/// When input cannot be read. If no one reads the output, the server ends without an error.
pub fn serve<W: Write + Send + 'static>(
    subjects: Subjects,
    input: impl BufRead,
    output: W,
) -> io::Result<()> {
    let server = Arc::new(Server {
        subjects,
        output: Mutex::new(output),
        calls: Mutex::default(),
        ended: Condvar::new(),
        introduced: AtomicBool::new(false),
    });
    let read = server.read(input);
    if read.is_ok() {
        server.wait(GRACE, |calls| calls.wanted() == 0);
    }
    for cancel in server.calls().by_id.values() {
        cancel.store(true, Ordering::Relaxed);
    }
    server.subjects.close();
    server.wait(LAST, |calls| calls.running == 0);
    read
}

impl<W: Write + Send + 'static> Server<W> {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(self: &Arc<Self>, mut input: impl BufRead) -> io::Result<()> {
        loop {
            let mut line = Vec::new();
            let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            if read as u64 == LONGEST && line.last() != Some(&b'\n') {
                skip_line(&mut input)?;
                if self
                    .write(&Fault::long(LONGEST).response(&Json::Null))
                    .is_err()
                {
                    return Ok(());
                }
                continue;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let written = match message::read(&line) {
                Incoming::Request(request) => self.request(request),
                Incoming::Cancelled(id) => {
                    if let Some(cancel) = self.calls().by_id.get(&id.to_string()) {
                        cancel.store(true, Ordering::Relaxed);
                    }
                    Ok(())
                }
                Incoming::Nothing => Ok(()),
                Incoming::Wrong(id, fault) => self.write(&fault.response(&id)),
            };
            if written.is_err() {
                // No one reads the output.
                return Ok(());
            }
        }
    }

    fn write(&self, message: &Json) -> io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(line.as_bytes())?;
        output.flush()
    }

    /// Answers at once, or on a separate thread when it is a call.
    fn request(self: &Arc<Self>, request: Request) -> io::Result<()> {
        let introduced = self.introduced.load(Ordering::Relaxed);
        let id = request.id.clone();
        let answer = match request.era(introduced) {
            Err(fault) => Err(fault),
            Ok(era) if takes_time(&request.method) => match self.spawn(request, era) {
                Err(fault) => Err(fault),
                Ok(()) => return Ok(()),
            },
            Ok(era) => self.answer(&request).map(|result| era.complete(result)),
        };
        self.write(&match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(fault) => fault.response(&id),
        })
    }

    /// Answers a call on a thread of its own.
    fn spawn(self: &Arc<Self>, request: Request, era: Era) -> Result<(), Fault> {
        let cancel = self.begin(&request)?;
        let (server, key) = (Arc::clone(self), request.id.to_string());
        let thread = std::thread::Builder::new().name("tenure-call".to_owned());
        let spawned = thread.spawn(move || server.call(&request, era, &cancel));
        spawned.map(drop).map_err(|error| {
            let mut calls = self.calls();
            calls.by_id.remove(&key);
            calls.running -= 1;
            Fault::failed(error.to_string())
        })
    }

    /// Answers a request that takes no time.
    fn answer(&self, request: &Request) -> Result<Json, Fault> {
        match request.method.as_str() {
            "initialize" => {
                self.introduced.store(true, Ordering::Relaxed);
                Ok(message::introduction(
                    &request.params,
                    &self.subjects.instructions(),
                ))
            }
            "server/discover" => Ok(message::discovery(&self.subjects.instructions())),
            "ping" => Ok(json!({})),
            "tools/list" | "resources/list" | "resources/templates/list"
                if request.params.get("cursor").is_some_and(|c| !c.is_null()) =>
            {
                Err(Fault::params("there is one page; leave out cursor"))
            }
            "tools/list" => Ok(tools::list(&self.subjects)),
            "resources/list" => Ok(resources::list(
                &self.subjects.dumps(),
                self.subjects.program.is_some(),
            )),
            "resources/templates/list" => Ok(message::fresh("resourceTemplates", Vec::new())),
            other => Err(Fault::unknown(other)),
        }
    }

    /// Registers a call, so that it can be cancelled.
    fn begin(&self, request: &Request) -> Result<Arc<AtomicBool>, Fault> {
        let mut calls = self.calls();
        let key = request.id.to_string();
        if calls.by_id.contains_key(&key) {
            return Err(Fault::request("a call with this id is being answered"));
        }
        if calls.by_id.len() >= MOST_CALLS {
            return Err(Fault::busy(MOST_CALLS));
        }
        let cancel = Arc::new(AtomicBool::new(false));
        calls.by_id.insert(key, Arc::clone(&cancel));
        calls.running += 1;
        Ok(cancel)
    }

    fn call(&self, request: &Request, era: Era, cancel: &Arc<AtomicBool>) {
        let token = request.params.pointer("/_meta/progressToken");
        let progress = |done: u32, message: &str| {
            if let Some(token) = token {
                // If the client does not read, the thread that reads its input detects this.
                let params =
                    json!({ "progressToken": token, "progress": done, "message": message });
                let method = "notifications/progress";
                let _ =
                    self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            }
        };
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            match request.method.as_str() {
                READ => call::resource(&self.subjects, &request.params, cancel, &progress),
                _ => call::answer(&self.subjects, &request.params, cancel, &progress),
            }
        }));
        let answer = answer.unwrap_or_else(|_| Err(Fault::internal()));
        // Before the response, because the client may use the id again as soon as it has the response.
        self.calls().by_id.remove(&request.id.to_string());
        // A cancelled call has no response.
        if !cancel.load(Ordering::Relaxed) {
            let _ = self.write(&match answer {
                Ok(result) => {
                    json!({ "jsonrpc": "2.0", "id": request.id, "result": era.complete(result) })
                }
                Err(fault) => fault.response(&request.id),
            });
        }
        self.calls().running -= 1;
        self.ended.notify_all();
    }

    /// Waits until `is_over`, or for this time.
    fn wait(&self, time: Duration, is_over: impl Fn(&Calls) -> bool) {
        let until = Instant::now() + time;
        let mut calls = self.calls();
        while !is_over(&calls) {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return;
            };
            let waited = self.ended.wait_timeout(calls, left);
            calls = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The method that reads a resource.
const READ: &str = "resources/read";

/// Whether a request is answered on a separate thread.
fn takes_time(method: &str) -> bool {
    matches!(method, "tools/call" | READ)
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let part = input.fill_buf()?;
        let (used, end) = match part.iter().position(|b| *b == b'\n') {
            Some(at) => (at + 1, true),
            None => (part.len(), part.is_empty()),
        };
        input.consume(used);
        if end {
            return Ok(());
        }
    }
}
