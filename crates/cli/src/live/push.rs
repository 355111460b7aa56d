//! Profiles sent to a server as long as a program runs: CPU time, contention, allocations and live objects, as pprof to
//! Pyroscope's `POST /ingest` or as OTLP to a collector of OpenTelemetry.
//!
//! One thread measures, another sends: a server that is slow or away for a while costs no part of a measurement, and the
//! program nothing. At the end of the program, a server that is away or refuses does not delay the end of the command.

use super::push_server::{Request, Server, ServerArgs};
use crate::output::note;
use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use live_session::Live;
use live_session::answers::{pprof, tables};
use live_session::clock::now_ms;
use live_session::recording::measure::What;
use profile::Profile;
use profile::write::pprof::write;
use report::profile::otlp;
use report::units::plural;
use requests::Params;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};
use ureq::http::StatusCode;

/// How long the end of a program or page is delayed to send the remaining data.
const LAST_PATIENCE: Duration = Duration::from_secs(15);
/// The same after a failed request: a server that does not answer delays the end for no longer than this.
const LAST_TRY: Duration = Duration::from_secs(3);
/// Pauses before the second and the third attempt to send something; there is no fourth.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// Measurements that may wait for the server; later ones are dropped.
const WAITING: usize = 8;

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Protocol {
    /// pprof to Pyroscope's /ingest
    Pyroscope,
    /// OTLP profiles (v1development) to a collector of OpenTelemetry
    Otlp,
}

/// Flags of sending.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PushArgs {
    /// With --record: send profiles to this server, for instance http://127.0.0.1:4040 or
    /// https://pyroscope.example
    #[arg(long, value_name = "URL", requires = "record")]
    push: Option<String>,
    /// With --push: protocol of the server
    #[arg(
        long,
        value_name = "PROTOCOL",
        requires = "push",
        default_value = "pyroscope"
    )]
    push_protocol: Protocol,
    /// With --push: name and labels [default: the main class]
    #[arg(long, value_name = "NAME{LABEL=VALUE,...}", requires = "push")]
    push_name: Option<String>,
    /// With --push: seconds of each profile
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "push",
        default_value_t = 15,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    push_every: u64,
    #[command(flatten)]
    server: ServerArgs,
}

/// Measuring and sending under way.
pub(crate) struct Pushing {
    state: Arc<State>,
    /// Sends; it pauses after a failure.
    sender: Thread,
    /// Is disconnected when everything has been sent.
    ended: Receiver<()>,
}

/// What the measuring and the sending thread share.
#[derive(Default)]
struct State {
    /// The present interval is the last one.
    over: AtomicBool,
    /// Whether the last request succeeded or failed; both are false before the first one.
    has_taken: AtomicBool,
    has_failed: AtomicBool,
}

impl State {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn set_taken(&self, is_taken: bool) {
        self.has_taken.store(is_taken, Ordering::SeqCst);
        self.has_failed.store(!is_taken, Ordering::SeqCst);
    }

    /// Waits, but not beyond the end.
    fn pause(&self, time: Duration) {
        let begun = Instant::now();
        while !self.is_over()
            && let Some(rest) = time.checked_sub(begun.elapsed())
        {
            std::thread::park_timeout(rest);
        }
    }
}

impl Pushing {
    /// Ends the present interval, and waits until it is sent, at most [`LAST_PATIENCE`].
    pub(crate) fn finish(&self, live: &Live) {
        self.state.over.store(true, Ordering::SeqCst);
        self.sender.unpark();
        live.finish();
        let patience = match self.state.has_failed.load(Ordering::SeqCst) {
            true => LAST_TRY,
            false => LAST_PATIENCE,
        };
        if self.ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            let seconds = patience.as_secs();
            note(&format!(
                "the server did not take the last profiles within {seconds} s"
            ));
        }
    }
}

/// What was measured in one range of time.
struct Measured {
    name: String,
    from_ms: u64,
    to_ms: u64,
    /// None of a program that has ended before it was measured.
    cpu_and_block: Option<Profile>,
    allocated: Option<Profile>,
    live: Option<Profile>,
}

impl PushArgs {
    /// Checks the address and the certificates before anything is started.
    ///
    /// # Errors
    /// If profiles cannot be sent in this way.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(url) = &self.push else { return Ok(()) };
        Server::new(url, &self.server).map(drop)
    }

    /// Measures and sends as long as there is a page, on separate threads.
    pub(crate) fn start(&self, live: Weak<Live>) -> Result<Option<Pushing>> {
        let Some(url) = &self.push else {
            return Ok(None);
        };
        let server = Server::new(url, &self.server)?;
        let (queue, waiting) = sync_channel(WAITING);
        let state = Arc::<State>::default();
        let (args, shared) = (self.clone(), Arc::clone(&state));
        let sender = std::thread::Builder::new().name("tenure-push".to_owned());
        let (end, ended) = sync_channel::<()>(0);
        let sender = sender.spawn(move || {
            args.send_all(&server, &waiting, &shared);
            drop(end);
        })?;
        let (args, shared) = (self.clone(), Arc::clone(&state));
        let measuring = std::thread::Builder::new().name("tenure-measure".to_owned());
        measuring.spawn(move || args.measure(&queue, &live, &shared))?;
        let sender = sender.thread().clone();
        Ok(Some(Pushing {
            state,
            sender,
            ended,
        }))
    }

    fn measure(&self, queue: &SyncSender<Measured>, live: &Weak<Live>, state: &State) {
        let every = Duration::from_secs(self.push_every);
        let mut from_ms = now_ms();
        let mut dropped = 0_u64;
        let mut is_last = false;
        while !is_last && let Some(live) = live.upgrade() {
            let cpu_and_block = live.measure_for(&[What::Cpu, What::Contention], every).ok();
            let has_ended = live.status().borrow().ended;
            is_last = has_ended || state.is_over();
            if cpu_and_block.is_none() && !is_last {
                // The agent is not there yet, or gone.
                drop(live);
                std::thread::sleep(Duration::from_millis(200));
                continue;
            }
            if has_ended {
                live.await_last_counts();
            }
            let to_ms = now_ms();
            let range = Params::default().with("from", &from_ms.to_string());
            let measured = Measured {
                name: match &self.push_name {
                    Some(name) => name.clone(),
                    None => live.program().name(),
                },
                from_ms,
                to_ms,
                cpu_and_block,
                allocated: tables::range_profile(&live, &range).ok(),
                live: tables::range_profile(&live, &Params::default()).ok(),
            };
            from_ms = to_ms;
            match queue.try_send(measured) {
                Ok(()) => report_dropped(std::mem::take(&mut dropped)),
                Err(TrySendError::Full(_)) => {
                    if dropped == 0 {
                        note(
                            "the server is too slow: profiles are dropped until it has taken those that wait",
                        );
                    }
                    dropped += 1;
                }
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        report_dropped(dropped);
    }

    fn send_all(&self, server: &Server, waiting: &Receiver<Measured>, state: &State) {
        // A fault is reported once, not every time.
        let mut reported = String::new();
        for measured in waiting {
            let requests = match self.push_protocol {
                Protocol::Pyroscope => measured.for_pyroscope(),
                Protocol::Otlp => measured.for_otlp().into_iter().collect(),
            };
            let mut requests = requests.iter();
            let sent = requests.try_for_each(|request| self.send(server, request, state));
            let fault = sent.err().map(|error| format!("{error:#}"));
            let fault = fault.unwrap_or_default();
            if !fault.is_empty() && fault != reported {
                note(&fault);
            }
            reported = fault;
            if !reported.is_empty() && state.is_over() {
                // The profiles that still wait would fail as well.
                return;
            }
        }
    }

    /// Sends one request, again after a pause if the server may take it then. At the end, a request is repeated only if the
    /// server has taken the one before.
    fn send(&self, server: &Server, request: &Request, state: &State) -> Result<()> {
        let mut is_healthy = state.has_taken.load(Ordering::SeqCst);
        let mut pauses = PAUSES.into_iter();
        loop {
            let is_over = state.is_over();
            let answer = server.send(request);
            state.set_taken(matches!(&answer, Ok((status, _)) if status.is_success()));
            let fault = match answer {
                Ok((status, _)) if status.is_success() => return Ok(()),
                Ok((status, why)) => {
                    let mut text = format!("{} does not take profiles: {status}", server.shown());
                    if !why.is_empty() {
                        text = format!("{text}: {why}");
                    }
                    let fault = anyhow::Error::msg(text);
                    if !is_temporary(status) {
                        return Err(fault);
                    }
                    fault
                }
                Err(error) => {
                    let text = format!("profiles cannot be sent to {}", server.shown());
                    anyhow::Error::new(error).context(text)
                }
            };
            match pauses.next() {
                Some(pause) if is_over && is_healthy => std::thread::sleep(pause),
                Some(pause) if !is_over => {
                    is_healthy = false;
                    state.pause(pause);
                }
                _ => return Err(fault),
            }
        }
    }
}

/// Whether the same request may succeed later.
fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 502 | 503 | 504)
}

impl Measured {
    fn for_pyroscope(&self) -> Vec<Request> {
        let request = |body| Request {
            path: "/ingest",
            query: vec![
                ("name", self.name.clone()),
                ("from", (self.from_ms / 1000).to_string()),
                // The next interval begins in the second in which this one ends.
                (
                    "until",
                    (self.to_ms / 1000).max(self.from_ms / 1000 + 1).to_string(),
                ),
                ("format", "pprof".to_owned()),
                ("sampleRate", "100".to_owned()),
                ("spyName", "tenure".to_owned()),
            ],
            kind: "application/octet-stream",
            is_packed: false,
            body,
        };
        let parts = [
            (self.cpu_and_block.as_ref(), &pprof::CPU),
            (self.cpu_and_block.as_ref(), &pprof::BLOCK),
            (self.allocated.as_ref(), &pprof::ALLOCS),
            (self.live.as_ref(), &pprof::HEAP),
        ];
        let parts = parts.into_iter();
        parts
            .filter_map(|(profile, metrics)| Some(request(write(profile?, metrics))))
            .collect()
    }

    /// `None` if nothing was recorded.
    fn for_otlp(&self) -> Option<Request> {
        let part = |profile, metrics| otlp::Part {
            profile,
            metrics,
            from_ms: self.from_ms,
            to_ms: self.to_ms,
        };
        let mut parts = Vec::new();
        if let Some(measured) = &self.cpu_and_block {
            parts.push(part(measured, &pprof::CPU));
            parts.push(part(measured, &pprof::BLOCK));
        }
        parts.extend(self.allocated.as_ref().map(|one| part(one, &pprof::ALLOCS)));
        parts.extend(self.live.as_ref().map(|one| part(one, &pprof::HEAP)));
        if parts.is_empty() {
            return None;
        }
        let plain = otlp::write(&parts, &attributes(&self.name));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let body = gzip.write_all(&plain).and_then(|()| gzip.finish());
        Some(Request {
            path: "/v1development/profiles",
            query: Vec::new(),
            kind: "application/x-protobuf",
            is_packed: body.is_ok(),
            body: body.unwrap_or(plain),
        })
    }
}

/// The attributes of `NAME{LABEL=VALUE,...}`.
fn attributes(name: &str) -> Vec<(String, String)> {
    let (service, labels) = match name.strip_suffix('}').and_then(|name| name.split_once('{')) {
        Some((service, labels)) => (service, labels),
        None => (name, ""),
    };
    let labels = labels.split(',').filter_map(|label| label.split_once('='));
    let labels = labels.map(|(key, value)| (key.trim(), value.trim().trim_matches('"')));
    std::iter::once(("service.name", service))
        .chain(labels)
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Says how many profiles were dropped before the server took one again.
fn report_dropped(count: u64) {
    if count > 0 {
        let profiles = plural(count, "profile was", "profiles were");
        note(&format!(
            "{profiles} dropped, because the server was too slow"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    const ARGS: PushArgs = PushArgs {
        push: None,
        push_protocol: Protocol::Pyroscope,
        push_name: None,
        push_every: 1,
        server: ServerArgs {
            push_ca: None,
            push_tenant: None,
            push_headers: None,
        },
    };

    /// A server that answers with one status after the other, and then no more: its address, and a message per request.
    fn server(statuses: &'static [u16]) -> (String, Receiver<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, requests) = sync_channel(statuses.len());
        std::thread::spawn(move || {
            for status in statuses {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut lines = BufReader::new(&stream).lines();
                while lines
                    .next()
                    .is_some_and(|line| !line.expect("text").is_empty())
                {}
                let answer = format!(
                    "HTTP/1.1 {status} -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                sender.send(()).expect("a test");
                stream.write_all(answer.as_bytes()).expect("answered");
            }
        });
        (url, requests)
    }

    /// Sends something; returns whether the server has taken it.
    fn sent(url: &str, state: &State) -> bool {
        let server = Server::new(url, &ARGS.server).expect("a server");
        let request = Request {
            path: "/ingest",
            query: Vec::new(),
            kind: "text/plain",
            is_packed: false,
            body: Vec::new(),
        };
        ARGS.send(&server, &request, state).is_ok()
    }

    #[test]
    fn at_the_end_a_server_that_refuses_is_tried_once() {
        let state = State::default();
        state.over.store(true, Ordering::SeqCst);
        let (url, requests) = server(&[503, 503, 503]);
        assert!(!sent(&url, &state));
        assert_eq!(requests.try_iter().count(), 1);
        // One that has taken the profiles before has the time to recover.
        state.set_taken(true);
        let (url, requests) = server(&[503, 200]);
        assert!(sent(&url, &state));
        assert_eq!(requests.try_iter().count(), 2);
    }

    #[test]
    fn the_end_cuts_the_pause_before_the_last_attempt() {
        let state = Arc::<State>::default();
        let (url, requests) = server(&[503, 503, 503]);
        let shared = Arc::clone(&state);
        let sender = std::thread::spawn(move || sent(&url, &shared));
        requests.recv().expect("the first attempt");
        state.over.store(true, Ordering::SeqCst);
        sender.thread().unpark();
        assert!(!sender.join().expect("no panic"));
        assert_eq!(requests.try_iter().count(), 1);
    }

    #[test]
    fn a_name_with_labels_becomes_attributes() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(attributes("shop"), [pair("service.name", "shop")]);
        let expected = [
            pair("service.name", "shop"),
            pair("env", "prod"),
            pair("zone", "b"),
        ];
        assert_eq!(attributes("shop{env=prod, zone=\"b\"}"), expected);
    }
}
