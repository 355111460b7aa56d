//! The program on a real terminal: script(1) makes one, and its screen is read as a person would.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The machine may be busy, but nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const ROWS: u16 = 40;
pub(crate) const COLUMNS: u16 = 150;

struct Seen {
    screen: vt100::Parser,
    /// Everything, escapes and all.
    raw: String,
}

pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    seen: Arc<Mutex<Seen>>,
}

/// True when there is a script(1) that makes terminals.
pub(crate) fn is_there() -> bool {
    let version = Command::new("script").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

impl Terminal {
    /// Runs `tenure` with these words (no quotes in them) on a terminal. Behind it the shell says
    /// its exit code and the state of the terminal.
    pub(crate) fn start(words: &str, agent: &Path) -> Terminal {
        let tenure = env!("CARGO_BIN_EXE_tenure");
        let line = format!(
            "trap : INT QUIT; stty rows {ROWS} cols {COLUMNS}; sh -c 'echo pid=$$.; exec {tenure} {words}'; \
             echo code=$?.; stty -a; echo end"
        );
        // A test run in the background of a script ignores Ctrl-C and Ctrl-\, and so would everything that it starts.
        let mut child = Command::new("env")
            .args([
                "--default-signal=INT,QUIT",
                "script",
                "-qec",
                &line,
                "/dev/null",
            ])
            .env("TERM", "xterm-256color")
            .env("TENURE_AGENT", agent)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let keys = child.stdin.take().expect("piped");
        let mut output = child.stdout.take().expect("piped");
        let seen = Arc::new(Mutex::new(Seen {
            screen: vt100::Parser::new(ROWS, COLUMNS, 0),
            raw: String::new(),
        }));
        let into = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 1 << 14];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let mut seen = into.lock().expect("locked");
                seen.screen.process(&buffer[..count]);
                let text = String::from_utf8_lossy(&buffer[..count]);
                seen.raw.push_str(&text);
            }
        });
        Terminal { child, keys, seen }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a terminal");
        self.keys.flush().expect("a terminal");
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.seen.lock().expect("locked").screen.screen().contents()
    }

    pub(crate) fn raw(&self) -> String {
        self.seen.lock().expect("locked").raw.clone()
    }

    /// Waits until the screen is as wanted, and gives it.
    pub(crate) fn until(&self, what: &str, mut wanted: impl FnMut(&str) -> bool) -> String {
        testkit::until(|| {
            let screen = self.screen();
            if wanted(&screen) {
                return Ok(screen);
            }
            Err(format!("{what}:\n{screen}"))
        })
    }

    pub(crate) fn wait(&self, words: &str) -> String {
        self.until(words, |screen| screen.contains(words))
    }

    /// Waits for words in all that was written.
    pub(crate) fn wait_raw(&self, words: &str) -> String {
        testkit::until(|| {
            let raw = self.raw();
            if raw.contains(words) {
                return Ok(raw);
            }
            Err(format!("{words}: {raw:?}"))
        })
    }

    /// The process id of `tenure`.
    pub(crate) fn pid(&self) -> String {
        let raw = self.wait_raw("pid=");
        let (_, rest) = raw.split_once("pid=").expect("a pid");
        rest.split('.').next().unwrap_or_default().to_owned()
    }

    /// It has ended with this code; all that was written before, and after.
    pub(crate) fn ended(&self, code: &str) -> (String, String) {
        let raw = self.wait_raw("\nend");
        let (before, after) = raw.rsplit_once("code=").expect("a code");
        assert_eq!(after.split('.').next(), Some(code), "{after}");
        (before.to_owned(), after.to_owned())
    }

    /// It has ended with this code, and the terminal is as it was.
    pub(crate) fn is_given_back(&self, code: &str) {
        let (before, after) = self.ended(code);
        assert!(
            before.contains("\x1b[?1049l"),
            "the other screen: {before:?}"
        );
        for word in ["isig icanon ", " echo "] {
            assert!(after.contains(word), "{word}: {after}");
        }
        let shown = before.rfind("\x1b[?25h").expect("a cursor");
        let hidden = before.rfind("\x1b[?25l").unwrap_or(0);
        assert!(shown > hidden, "the cursor is hidden");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
