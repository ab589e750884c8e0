//! A headless Chromium, told what to do over its debugging pipe.
//!
//! The pipe needs no WebSocket: messages are JSON that ends with a zero byte, on the file descriptors 3 and 4,
//! which a shell opens on named pipes. The browser ends with this value.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

/// A condition of the page holds within this time, or the test fails.
const LONG: Duration = Duration::from_secs(20);

pub(crate) struct Browser {
    process: Child,
    to: File,
    from: BufReader<File>,
    session: String,
    sent: u64,
    _folder: tempfile::TempDir,
}

pub(crate) fn binary() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|folder| folder.join("chromium")).find(|file| file.is_file())
}

impl Browser {
    /// Opens the page in a window of this size.
    pub(crate) fn open(binary: &Path, url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (to, from) = (folder.path().join("to"), folder.path().join("from"));
        for pipe in [&to, &from] {
            assert!(Command::new("mkfifo").arg(pipe).status().expect("mkfifo").success());
        }
        let process = Command::new("sh")
            .args(["-c", "exec \"$0\" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                 --user-data-dir=\"$1\" --window-size=1400,1000 --remote-debugging-pipe about:blank 3<\"$2\" 4>\"$3\""])
            .args([binary, &folder.path().join("profile"), &to, &from])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = process.expect("a shell");
        let to = File::options().write(true).open(to).expect("the browser reads");
        let from = BufReader::new(File::open(from).expect("the browser writes"));
        let mut browser = Self { process, to, from, session: String::new(), sent: 0, _folder: folder };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attached);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        browser.call("Page.enable", json!({}));
        browser.call("Page.navigate", json!({ "url": url }));
        browser.until("location.href !== 'about:blank' && document.readyState !== 'loading'");
        browser
    }

    /// Sends a command, and waits for its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser runs");
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).expect("the browser runs");
            assert_eq!(answer.pop(), Some(0), "the browser has ended");
            let answer: Value = serde_json::from_slice(&answer).expect("JSON");
            if answer["id"] == self.sent {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until the expression is true; returns how long that took. The page itself looks, by its own clock.
    pub(crate) fn until(&mut self, expression: &str) -> Duration {
        let wait = format!(
            "new Promise(done => {{ const began = performance.now(); const look = () => {{ \
             let holds = false; try {{ holds = {expression}; }} catch {{ }} const took = performance.now() - began; \
             if (holds === true) done(took); else if (took > {}) done(null); else setTimeout(look, 20); }}; look(); }})",
            LONG.as_millis()
        );
        match self.value(&wait).as_f64() {
            Some(took) => Duration::from_secs_f64(took / 1_000.0),
            None => panic!("not true: {expression}\n{}", self.value("document.body.innerText")),
        }
    }

    /// Presses a key, with its text if it has one.
    pub(crate) fn press(&mut self, key: &str) {
        let mut params = json!({ "type": "keyDown", "key": key });
        match key {
            "Enter" => (params["text"], params["windowsVirtualKeyCode"]) = (json!("\r"), json!(13)),
            "Escape" => params["windowsVirtualKeyCode"] = json!(27),
            "Tab" => params["windowsVirtualKeyCode"] = json!(9),
            text => params["text"] = json!(text),
        }
        self.call("Input.dispatchKeyEvent", params);
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        text.chars().for_each(|key| self.press(&key.to_string()));
    }

    /// In dark or light colours.
    pub(crate) fn colours(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Keeps a picture of the page as `target/page/<name>.png`.
    pub(crate) fn picture(&mut self, name: &str) {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = base64::engine::general_purpose::STANDARD.decode(picture["data"].as_str().expect("text"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(format!("{name}.png")), bytes.expect("base64")).expect("a file");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop((self.process.kill(), self.process.wait()));
    }
}
