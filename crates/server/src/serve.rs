//! Listens on loopback. Stops at a signal or by [`Running::stop`], at most two seconds later, even if a browser keeps
//! connections open.

use crate::arrivals::Arrivals;
use crate::guard::{Gate, gate};
use crate::stop::Stop;
use axum::Router;
use axum::extract::Request;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long open connections may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// Where to listen.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Port; 0 for any free one.
    pub port: u16,
    /// The token, for tests; `None` for a random one.
    pub token: Option<String>,
    /// Stop at SIGINT and SIGTERM.
    pub signals: bool,
}

/// Why no server could be started.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The port is taken, or the system has no loopback interface.
    #[error("cannot listen on 127.0.0.1:{port}: {error}")]
    Listen {
        /// The port requested.
        port: u16,
        /// Why not.
        error: io::Error,
    },
    /// The system gives no random numbers, or no threads.
    #[error("cannot start the server: {0}")]
    Start(String),
}

/// A running server.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    token: String,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Running {
    /// The address of the first page: `http://127.0.0.1:PORT/TOKEN/`.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    /// The socket address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Makes the server end; [`wait`](Self::wait) waits for that.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// A handle that can stop the server from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// Waits until the server has ended.
    pub fn wait(self) {
        // The result has no information: a panic of the thread has already been reported.
        let _ = self.thread.join();
    }
}

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Makes the server end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// True after a call of [`stop`](Self::stop).
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow()
    }
}

/// Whether a server could listen on this port now; 0 is any free one.
///
/// # Errors
/// When the port is taken, or the system has no loopback interface.
pub fn check_port(port: u16) -> Result<(), ServeError> {
    listen_on(port).map(drop)
}

fn listen_on(port: u16) -> Result<std::net::TcpListener, ServeError> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    listener.map_err(|error| ServeError::Listen { port, error })
}

/// Serves `site` below the token on a thread of its own.
///
/// # Errors
/// When the port cannot be used, or there is no random token.
pub fn start(site: Router, config: &Config) -> Result<Running, ServeError> {
    let token = match &config.token {
        Some(token) => token.clone(),
        None => random_token()?,
    };
    let listen = |error| ServeError::Listen {
        port: config.port,
        error,
    };
    let listener = listen_on(config.port)?;
    listener.set_nonblocking(true).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("tenure-server")
        .enable_all()
        .build()
        .map_err(|e| ServeError::Start(e.to_string()))?;
    let (stop, stopping) = watch::channel(false);
    let entrance = Gate::new(&token, address.port(), Stop(stopping.clone()));
    let app = Router::new().fallback(move |request: Request| {
        let (entrance, site) = (entrance.clone(), site.clone());
        async move { gate(&entrance, site, request).await }
    });
    let signals = config.signals;
    let to_stop = stop.clone();
    let thread = std::thread::Builder::new()
        .name("tenure-serve".to_owned())
        .spawn(move || {
            runtime.block_on(until_stopped(listener, app, stopping, to_stop, signals));
            runtime.shutdown_timeout(Duration::from_millis(500));
        })
        .map_err(|e| ServeError::Start(e.to_string()))?;
    Ok(Running {
        address,
        token,
        stop,
        thread,
    })
}

async fn until_stopped(
    listener: std::net::TcpListener,
    app: Router,
    stopping: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    signals: bool,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    if signals {
        tokio::spawn(async move {
            signal().await;
            stop.send_replace(true);
        });
    }
    let mut graceful = Stop(stopping.clone());
    let server = axum::serve(Arrivals(listener), app)
        .with_graceful_shutdown(async move { graceful.stopped().await });
    let mut late = Stop(stopping);
    tokio::select! {
        _ = server => {}
        () = async { late.stopped().await; tokio::time::sleep(GRACE).await; } => {}
    }
}

/// Returns at SIGINT or SIGTERM.
async fn signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Without a signal handler, only the end of the process can stop the server.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// 128 random bits in hexadecimal.
fn random_token() -> Result<String, ServeError> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| ServeError::Start(e.to_string()))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
