//! `tenure mcp`: a few questions about heap dumps, profiles and a running program as tools of the Model Context Protocol, on
//! standard input and output. A line is a message of JSON-RPC 2.0; calls are answered side by side, each
//! in a bounded text of JSON whose object ids other calls take (docs/reference/mcp.md). It writes nothing but
//! the index, and the heap dumps that a client has it take of the program.
//!
//! In reading order: `message` (what a line says, and in which revision of the protocol), `subjects` (what tools can name),
//! `table` (the tools), `tools` (the schemas of their arguments), `call` (a call becomes a question
//! to an explorer), `program` (or to a running program), `resources` (reports), `bound` (answers stay short).

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

/// Longest message that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// Most calls at a time.
const MOST_CALLS: usize = 16;

/// How long calls may still take when no more input comes. A client that ends us sooner may.
const GRACE: Duration = Duration::from_secs(30);

/// What all threads share.
struct Server<W> {
    subjects: Subjects,
    output: Mutex<W>,
    /// Calls that are being answered, by the text of their ids.
    calls: Mutex<HashMap<String, Arc<AtomicBool>>>,
    /// Notified when a call ends.
    ended: Condvar,
    /// A client of an older revision has introduced itself.
    introduced: AtomicBool,
}

/// Answers messages until the input ends.
///
/// # Errors
/// When input cannot be read. Output that no one reads ends the server without a fault.
pub fn serve<W: Write + Send>(
    subjects: Subjects,
    input: impl BufRead,
    output: W,
) -> io::Result<()> {
    let server = Server {
        subjects,
        output: Mutex::new(output),
        calls: Mutex::default(),
        ended: Condvar::new(),
        introduced: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let read = server.read(input, scope);
        if read.is_ok() {
            server.finish();
        }
        for cancel in server.calls().values() {
            cancel.store(true, Ordering::Relaxed);
        }
        server.subjects.close();
        read
    })
}

impl<W: Write + Send> Server<W> {
    fn calls(&self) -> MutexGuard<'_, HashMap<String, Arc<AtomicBool>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<'scope>(
        &'scope self,
        mut input: impl BufRead,
        scope: &'scope std::thread::Scope<'scope, '_>,
    ) -> io::Result<()> {
        loop {
            let mut line = Vec::new();
            let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            if read as u64 == LONGEST && line.last() != Some(&b'\n') {
                skip_line(&mut input)?;
                line = b"too long".to_vec();
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let written = match message::read(&line) {
                Incoming::Request(request) => self.request(request, scope),
                Incoming::Cancelled(id) => {
                    if let Some(cancel) = self.calls().get(&id.to_string()) {
                        cancel.store(true, Ordering::Relaxed);
                    }
                    Ok(())
                }
                Incoming::Nothing => Ok(()),
                Incoming::Wrong(id, fault) => self.write(&fault.response(&id)),
            };
            if written.is_err() {
                // No one reads what we say.
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

    /// Answers at once, or on a thread of its own when it is a call.
    fn request<'scope>(
        &'scope self,
        request: Request,
        scope: &'scope std::thread::Scope<'scope, '_>,
    ) -> io::Result<()> {
        let introduced = self.introduced.load(Ordering::Relaxed);
        let answer = match request.era(introduced) {
            Err(fault) => Err(fault),
            Ok(era) if takes_time(&request.method) => match self.begin(&request) {
                Err(fault) => Err(fault),
                Ok(cancel) => {
                    scope.spawn(move || self.call(&request, era, &cancel));
                    return Ok(());
                }
            },
            Ok(era) => self.answer(&request).map(|result| era.complete(result)),
        };
        self.write(&match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": request.id, "result": result }),
            Err(fault) => fault.response(&request.id),
        })
    }

    /// What is answered at once.
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
            "resources/list" => Ok(resources::list(&self.subjects.dumps())),
            "resources/templates/list" => Ok(message::fresh("resourceTemplates", Vec::new())),
            other => Err(Fault::unknown(other)),
        }
    }

    /// Notes a call, so that it can be cancelled.
    fn begin(&self, request: &Request) -> Result<Arc<AtomicBool>, Fault> {
        let mut calls = self.calls();
        let key = request.id.to_string();
        if calls.contains_key(&key) {
            return Err(Fault::request("a call with this id is being answered"));
        }
        if calls.len() >= MOST_CALLS {
            return Err(Fault::busy(MOST_CALLS));
        }
        let cancel = Arc::new(AtomicBool::new(false));
        calls.insert(key, Arc::clone(&cancel));
        Ok(cancel)
    }

    fn call(&self, request: &Request, era: Era, cancel: &Arc<AtomicBool>) {
        let token = request.params.pointer("/_meta/progressToken");
        let progress = |done: u32, message: &str| {
            if let Some(token) = token {
                // A client that does not read will be noticed by the reader of its input.
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
        // Before the answer: the client may use the id again as soon as it has that.
        self.calls().remove(&request.id.to_string());
        // Of a cancelled call nothing more is reported.
        if !cancel.load(Ordering::Relaxed) {
            let _ = self.write(&match answer {
                Ok(result) => {
                    json!({ "jsonrpc": "2.0", "id": request.id, "result": era.complete(result) })
                }
                Err(fault) => fault.response(&request.id),
            });
        }
        self.ended.notify_all();
    }

    /// Lets calls that came before the end of the input come to their answers.
    fn finish(&self) {
        let until = Instant::now() + GRACE;
        let mut calls = self.calls();
        while !calls.is_empty() {
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

/// Whether a request is answered on a thread of its own.
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
