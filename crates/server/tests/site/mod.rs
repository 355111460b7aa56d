//! An explorer of the demo's dump that serves, asked over real sockets.
#![allow(dead_code, reason = "each test file uses a part of it")]

use heap_graph::Options;
use requests::Stage;
use serde_json::Value as Json;
use server::explorer::{Explorer, router};
use server::{Config, Running, start};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) struct Site {
    pub(crate) explorer: Arc<Explorer>,
    pub(crate) running: Running,
    folder: tempfile::TempDir,
}

impl Site {
    /// Serves; the dump is read.
    pub(crate) fn new() -> Site {
        Site::with(Options::default())
    }

    /// Serves the dump, read with other options.
    pub(crate) fn with(options: Options) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let packed = testkit::corpus::workspace().join("demo/leak-small.hprof.gz");
        let file = folder.path().join("leak.hprof");
        std::fs::write(&file, testkit::corpus::unpacked(&packed)).unwrap();
        Site::of(folder, options)
    }

    /// Serves the dump again; its index is there.
    pub(crate) fn again(mut self) -> Site {
        let empty = tempfile::tempdir().unwrap();
        Site::of(
            std::mem::replace(&mut self.folder, empty),
            Options::default(),
        )
    }

    fn of(folder: tempfile::TempDir, options: Options) -> Site {
        let file = folder.path().join("leak.hprof");
        let explorer = Explorer::open(&file, options);
        let running = start(router(Arc::clone(&explorer)), &Config::default()).unwrap();
        let state = explorer.state();
        testkit::until(|| {
            let now = state.borrow();
            if now.stage == Stage::Ready {
                return Ok(());
            }
            Err(format!("{now:?}"))
        });
        Site {
            explorer,
            running,
            folder,
        }
    }

    /// The dump.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("leak.hprof")
    }

    /// Requests what is at an address behind the token, and does not wait.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let (address, token) = (self.running.address(), self.running.token());
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} /{token}/{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// Status, head and body of what is at an address behind the token.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String, String) {
        let mut answer = String::new();
        self.send(method, path, body)
            .read_to_string(&mut answer)
            .unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    /// An answer that is JSON.
    pub(crate) fn get(&self, path: &str) -> Json {
        let (status, _, body) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.explorer.close();
        self.running.stop();
    }
}
