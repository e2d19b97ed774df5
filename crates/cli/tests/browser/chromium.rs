//! A browser under remote control: the DevTools protocol over a pipe.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Debian's and others' names of the program.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub struct Chromium {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
    events: VecDeque<Value>,
    session: String,
    number: u64,
}

/// The program, where there is one.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).flat_map(|dir| BROWSERS.map(|name| dir.join(name)));
    found.into_iter().find(|program| program.is_file())
}

impl Chromium {
    /// Starts it, with a profile in `folder`.
    pub fn start(program: &Path, folder: &Path) -> Self {
        // The browser reads commands from descriptor 3 and answers on 4.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"])
            .arg(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"])
            .args(["--no-first-run", "--disable-background-networking", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the browser");
        let stdin = child.stdin.take().expect("a pipe");
        let mut stdout = child.stdout.take().expect("a pipe");
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let (mut text, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
            while let Ok(n @ 1..) = stdout.read(&mut buffer) {
                text.extend_from_slice(&buffer[..n]);
                while let Some(end) = text.iter().position(|byte| *byte == 0) {
                    let message: Vec<u8> = text.drain(..=end).collect();
                    let parsed = serde_json::from_slice(&message[..end]).expect("a message");
                    if sender.send(parsed).is_err() {
                        return;
                    }
                }
            }
        });
        let session = String::new();
        let mut browser = Chromium { child, stdin, messages, events: VecDeque::new(), session, number: 0 };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = browser
            .call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// A command and its result.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut bytes = serde_json::to_vec(&message).expect("JSON");
        bytes.push(0);
        self.stdin.write_all(&bytes).expect("the browser listens");
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = self.receive(end, method);
            if answer["id"].as_u64() == Some(self.number) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push_back(answer);
        }
    }

    fn receive(&mut self, end: Instant, what: &str) -> Value {
        let left = end.saturating_duration_since(Instant::now());
        self.messages.recv_timeout(left).unwrap_or_else(|_| panic!("{what}: the browser does not answer"))
    }

    fn await_event(&mut self, name: &str) {
        let end = Instant::now() + PATIENCE;
        if let Some(at) = self.events.iter().position(|event| event["method"] == name) {
            self.events.remove(at);
            return;
        }
        loop {
            let event = self.receive(end, name);
            if event["method"] == name {
                return;
            }
            self.events.push_back(event);
        }
    }

    /// Opens a page in a window of this width.
    pub fn open(&mut self, address: &str, width: u32, dark: bool) {
        self.events.clear();
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = json!({ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [scheme] }));
        let done = self.call("Page.navigate", &json!({ "url": address }));
        assert!(done["errorText"].is_null(), "{address}: {done}");
        self.await_event("Page.loadEventFired");
    }

    /// Waits for the page that a click leads to.
    pub fn await_load(&mut self) {
        self.await_event("Page.loadEventFired");
    }

    /// The value of an expression, which may be a promise.
    pub fn value(&mut self, expression: &str) -> Value {
        let wanted = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let found = self.call("Runtime.evaluate", &wanted);
        assert!(found["exceptionDetails"].is_null(), "{expression}: {}", found["exceptionDetails"]);
        found["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        while self.value(expression) != true {
            assert!(Instant::now() < end, "never: {expression}: {}", self.value("document.body.innerText"));
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What the page complained of: exceptions, and everything that its policy refused.
    pub fn complaints(&mut self) -> Vec<String> {
        while let Ok(event) = self.messages.try_recv() {
            self.events.push_back(event);
        }
        let loud = self.events.iter().filter(|event| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            _ => false,
        });
        loud.map(|event| event["params"].to_string()).collect()
    }

    /// Saves the page as a picture if `DYNO_SCREENSHOTS` names a folder.
    pub fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("DYNO_SCREENSHOTS") else { return };
        let wanted = json!({ "format": "png", "captureBeyondViewport": true });
        let data = self.call("Page.captureScreenshot", &wanted)["data"].clone();
        self.keep(&PathBuf::from(folder).join(format!("{name}.png")), &data);
    }

    /// The whole page as a picture.
    pub fn whole_picture(&mut self, name: &str) {
        if std::env::var_os("DYNO_SCREENSHOTS").is_none() {
            return;
        }
        let metrics = self.call("Page.getLayoutMetrics", &json!({}));
        let height = metrics["cssContentSize"]["height"].as_f64().unwrap_or(900.0).min(12_000.0);
        let width = self.value("innerWidth");
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        std::thread::sleep(Duration::from_millis(300));
        self.picture(name);
    }

    /// The page as it is printed.
    pub fn pdf(&mut self) -> Vec<u8> {
        let data = self.call("Page.printToPDF", &json!({ "printBackground": false }))["data"].clone();
        decode(&data)
    }

    fn keep(&self, path: &Path, data: &Value) {
        std::fs::write(path, decode(data)).expect("a picture");
    }
}

fn decode(data: &Value) -> Vec<u8> {
    use base64::Engine as _;
    let text = data.as_str().expect("base64");
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
