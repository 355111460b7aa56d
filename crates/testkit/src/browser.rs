//! A real browser for tests: Chromium without a window, spoken to over a pipe in the DevTools
//! protocol. Clicks and keys are those of the input system, not calls into the page.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long any one thing may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page. It ends when it is dropped.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// Errors of the page: exceptions, refused loads, console errors.
    pub errors: Vec<String>,
    _profile: tempfile::TempDir,
}

/// The Chromium of this machine, if there is one.
pub fn chromium() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| {
            let version = Command::new(name).arg("--version").output();
            version.is_ok_and(|out| out.status.success())
        })
}

impl Browser {
    /// Starts one; `None` where there is no Chromium.
    ///
    /// # Panics
    /// When there is one and it does not start.
    pub fn start() -> Option<Browser> {
        let program = chromium()?;
        let profile = tempfile::tempdir().expect("a folder for the browser");
        // The protocol is on descriptors 3 and 4; the shell puts them there.
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(
                "exec \"$0\" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
                 --no-first-run --disable-extensions --disable-background-networking \
                 --remote-debugging-pipe --user-data-dir=\"$1\" about:blank \
                 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null",
            )
            .arg(program)
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take().expect("a pipe");
        let mut out = child.stdout.take().expect("a pipe");
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut buffer = Vec::new();
            let mut chunk = [0u8; 1 << 16];
            while let Ok(n) = out.read(&mut chunk) {
                if n == 0 {
                    break;
                }
                buffer.extend_from_slice(&chunk[..n]);
                while let Some(end) = buffer.iter().position(|b| *b == 0) {
                    let message: Vec<u8> = buffer.drain(..=end).collect();
                    let message = serde_json::from_slice(&message[..end]);
                    if message.is_ok_and(|m| sender.send(m).is_err()) {
                        return;
                    }
                }
            }
        });
        let mut browser = Browser {
            child,
            to,
            from,
            next: 0,
            session: None,
            errors: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the protocol.
    ///
    /// # Panics
    /// When the browser refuses or does not answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.try_call(method, params);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method of the protocol, which may refuse.
    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser is there");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self
                .from
                .recv_timeout(left)
                .unwrap_or_else(|e| panic!("{method}: no answer from the browser: {e}"));
            if answer["id"] == id {
                return match &answer["error"] {
                    Value::Null => Ok(answer["result"].clone()),
                    error => Err(error.clone()),
                };
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let text = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                event["params"]["exceptionDetails"]["exception"]["description"].to_string()
            }
            Some("Log.entryAdded") if event["params"]["entry"]["level"] == "error" => {
                let entry = &event["params"]["entry"];
                format!("{} {}", entry["text"], entry["url"])
            }
            _ => return,
        };
        self.errors.push(text);
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
        self.wait("document.readyState === 'complete'");
    }

    /// The value of an expression in the page; promises are awaited.
    ///
    /// # Panics
    /// When it throws.
    pub fn eval(&mut self, expression: &str) -> Value {
        let value = self.eval_here(expression);
        value.unwrap_or_else(|| panic!("{expression}: the page went away meanwhile"))
    }

    /// The value of an expression, unless the page goes to another address meanwhile.
    fn eval_here(&mut self, expression: &str) -> Option<Value> {
        let answer = self.try_call(
            "Runtime.evaluate",
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true}),
        );
        let answer = match answer {
            Err(error) if error["message"] == "Inspected target navigated or closed" => {
                return None;
            }
            answer => answer.unwrap_or_else(|error| panic!("{expression}: {error}")),
        };
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        Some(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true, on this page or the one it goes to; gives the time that took.
    ///
    /// # Panics
    /// When it does not become true.
    pub fn wait(&mut self, condition: &str) -> Duration {
        let began = Instant::now();
        while self.eval_here(&format!("Boolean({condition})")) != Some(json!(true)) {
            if began.elapsed() > PATIENCE {
                let body = self.eval("document.body?.innerText?.slice(0, 1500)");
                panic!(
                    "{condition} did not come true; errors {:?}; page: {body}",
                    self.errors
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        began.elapsed()
    }

    /// Clicks into the middle of the first element that an expression gives, once it lies still and
    /// nothing is in front of it.
    ///
    /// # Panics
    /// When there is none, or it cannot be hit.
    pub fn click(&mut self, element: &str) {
        let script = format!(
            "(async () => {{ const e = {element}; if (!e) return null; \
             e.scrollIntoView({{block: 'center'}}); \
             const at = () => {{ const r = e.getClientRects()[0]; \
             return r && [r.x + Math.min(r.width / 2, 60), r.y + r.height / 2]; }}; \
             const frame = () => new Promise((done) => setTimeout(done, 40)); \
             const before = at(); await frame(); await frame(); const after = at(); \
             if (!before || !after || String(before) !== String(after)) return null; \
             const hit = document.elementFromPoint(...after); \
             if (!hit || !e.contains(hit) && !hit.contains(e)) return null; return after; }})()"
        );
        let began = Instant::now();
        loop {
            let at = self.eval(&script);
            if at.is_array() {
                for kind in ["mousePressed", "mouseReleased"] {
                    let event = json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
                    self.call("Input.dispatchMouseEvent", event);
                }
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "nothing to click, or it cannot be hit: {element}"
            );
        }
    }

    /// Presses a key, such as `j` or `Enter`.
    pub fn press(&mut self, key: &str) {
        let mut down = json!({"type": "keyDown", "key": key});
        if key.chars().count() == 1 {
            down["text"] = json!(key);
        }
        if key == "Enter" {
            down["windowsVirtualKeyCode"] = json!(13);
            down["text"] = json!("\r");
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key}),
        );
    }

    /// Sets the size of the window in pixels, and light or dark.
    pub fn look(&mut self, width: u32, height: u32, dark: bool) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
        let value = if dark { "dark" } else { "light" };
        self.call(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": value}]}),
        );
    }

    /// Writes what is to be seen into a PNG file.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn screenshot(&mut self, file: &Path) {
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = base64(shot["data"].as_str().unwrap_or_default());
        std::fs::write(file, bytes).expect("a picture");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Decodes the standard alphabet; other characters are skipped.
fn base64(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for b in text.bytes() {
        let digit = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_any_length_is_read() {
        for (text, want) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(base64(text), want.as_bytes());
        }
    }
}
